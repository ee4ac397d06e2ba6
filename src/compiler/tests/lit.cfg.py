# The pass's tests: host code in the form that nvcc gives it, compiled by clang with the plugin, read by FileCheck.
import lit.formats

config.name = "heddle-pass"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".cpp"]
config.test_source_root = config.heddle_source
config.test_exec_root = config.heddle_object

config.substitutions.append(
    (
        "%compile",
        config.heddle_clang + " -std=c++17 -g1 -fno-discard-value-names -S -emit-llvm -o - "
        "-Rpass=heddle -Rpass-missed=heddle -fpass-plugin=" + config.heddle_pass,
    )
)
# Compiles what %compile gave.
config.substitutions.append(
    ("%again", config.heddle_clang + " -x ir -S -emit-llvm -o - -fpass-plugin=" + config.heddle_pass + " -")
)
config.substitutions.append(("%check", config.heddle_filecheck + " %s"))
