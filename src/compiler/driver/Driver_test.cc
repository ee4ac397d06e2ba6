// What heddle cc makes of nvcc's arguments, and its table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

#include "driver/Advice.h"
#include "driver/Command.h"
#include "driver/Names.h"
#include "driver/Process.h"
#include "driver/Table.h"

namespace heddle::compiler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Tools tools{"/cuda/bin/nvcc", "clang++-19", "/lib/pass.so", "/cuda/lib64", {75, 80, 90}};

Arguments line_for(const Arguments &given) { return commandFor(given, tools).Line; }
std::string text_for(const Arguments &given) {
  std::string text;
  for (const std::string &argument : line_for(given))
    text += argument + " ";
  return text;
}

TEST(Command, AnInputGetsClangAndThePass) {
  const std::string text = text_for({"-c", "a.cu"});
  EXPECT_THAT(text, HasSubstr("-ccbin clang++-19 "));
  EXPECT_THAT(text, HasSubstr("-Xcompiler -fpass-plugin=/lib/pass.so "));
  EXPECT_THAT(text, HasSubstr("-Xcompiler -D__NV_LEGACY_LAUNCH,"));
}

TEST(Command, WithoutAnInputNothingIsAdded) {
  EXPECT_THAT(line_for({"--version"}), ElementsAre("--version"));
  EXPECT_THAT(line_for({"-o", "a.cu"}), ElementsAre("-o", "a.cu"));
}

TEST(Command, HostCodeIsOptimisedUnlessTheUserSaysHowMuch) {
  EXPECT_THAT(text_for({"a.cu"}), HasSubstr("-Xcompiler -O2,"));
  for (const Arguments &given : {Arguments{"-O3", "a.cu"}, Arguments{"-O0", "a.cu"}, Arguments{"-G", "a.cu"},
                                 Arguments{"-Xcompiler", "-O1,-Wall", "a.cu"}})
    EXPECT_THAT(text_for(given), Not(HasSubstr("-Xcompiler -O2,"))) << given[0];
}

TEST(Command, AnArchitectureThatTheToolkitNoLongerKnowsIsReplacedWithANote) {
  for (const Arguments &given :
       {Arguments{"-arch=sm_35", "a.cu"}, Arguments{"-arch", "sm_35", "a.cu"},
        Arguments{"--gpu-architecture=sm_35", "a.cu"}, Arguments{"-gencode", "arch=compute_35,code=sm_35", "a.cu"},
        Arguments{"-gencode=arch=compute_35,code=\"sm_35,compute_35\"", "a.cu"}}) {
    const Command made = commandFor(given, tools);
    EXPECT_THAT(made.Line, Contains("-arch=sm_75")) << given[0];
    EXPECT_THAT(made.Notes, ElementsAre(HasSubstr("35 is not known to this toolkit; sm_75"))) << given[0];
  }
}

TEST(Command, OneKnownArchitectureAmongSeveralIsEnough) {
  const Command made = commandFor(
      {"-gencode", "arch=compute_30,code=sm_30", "-gencode", "arch=compute_80,code=[sm_80,compute_80]", "a.cu"}, tools);
  EXPECT_THAT(made.Line, Contains("arch=compute_80,code=[sm_80,compute_80]"));
  EXPECT_THAT(made.Line, Not(Contains("arch=compute_30,code=sm_30")));
  EXPECT_THAT(made.Line, Not(Contains(HasSubstr("-arch="))));
}

TEST(Command, AKnownArchitectureStaysAsItIs) {
  const Command made = commandFor({"-arch=sm_90", "a.cu"}, tools);
  EXPECT_THAT(made.Line, Contains("-arch=sm_90"));
  EXPECT_THAT(made.Notes, IsEmpty());
}

TEST(Command, AnotherHostCompilerIsReplacedWithANote) {
  const Command made = commandFor({"-ccbin", "g++-9", "a.cu"}, tools);
  EXPECT_THAT(made.Line, Not(Contains("g++-9")));
  EXPECT_THAT(made.Notes, ElementsAre("host compiler g++-9 replaced by clang++-19"));
}

TEST(Command, AnUnknownArchitectureBesideAKnownOneIsLeftOut) {
  const Command made =
      commandFor({"-gencode", "arch=compute_30,code=sm_30", "-gencode", "arch=compute_80,code=sm_80", "a.cu"}, tools);
  EXPECT_THAT(made.Notes, ElementsAre("compute_30 is not known to this toolkit; it is left out"));
}

TEST(Command, AskedForOptimisationIsAllThereIs) {
  for (const Arguments &given : {Arguments{"-O1", "a.cu"}, Arguments{"-Xcompiler", "-Wall,-O1", "a.cu"},
                                 Arguments{"--compiler-options=-Wall -O1", "a.cu"}, Arguments{"-G", "a.cu"}})
    EXPECT_THAT(text_for(given), Not(HasSubstr("-fno-strict-aliasing"))) << given[0];
  EXPECT_THAT(text_for({"-Xcompiler", "-Wall", "a.cu"}), HasSubstr("-O2,-fno-strict-aliasing"));
}

TEST(Command, HostFlagsThatClangDoesNotKnowAreLeftOut) {
  Tools strict = tools;
  strict.Takes = [](const std::string &flag) { return flag != "-fipa-pta"; };
  const Command made = commandFor({"-Xcompiler", "-Wall -fipa-pta,-fPIC", "a.cu"}, strict);
  EXPECT_THAT(made.Line, Contains("-Wall,-fPIC"));
  EXPECT_THAT(made.Notes, ElementsAre("clang does not know the host flag -fipa-pta; it is left out"));
  EXPECT_THAT(commandFor({"-Xcompiler=-fipa-pta", "a.cu"}, strict).Line, Not(Contains(HasSubstr("-fipa-pta"))));
  EXPECT_THAT(commandFor({"-forward-unknown-to-host-compiler", "-fipa-pta", "a.cu"}, strict).Line,
              Not(Contains("-fipa-pta")));
}

TEST(Command, AValueIsNoInput) {
  EXPECT_FALSE(hasInput({"--dependency-output", "a.d", "-isystem", "include", "--version"}));
  EXPECT_TRUE(hasInput({"-MD", "-MF", "a.d", "a.cu"}));
}

TEST(Command, LibrariesThatAProgramDoesNotCallAreNotNeededWhereItRuns) {
  const Arguments line = line_for({"a.o", "-lcuda", "-o", "a"});
  EXPECT_EQ(line[0], "-Xlinker");
  EXPECT_EQ(line[1], "--as-needed");
  EXPECT_THAT(line_for({"-c", "a.cu"}), Not(Contains("--as-needed")));
}

TEST(Command, OpenMpOfGccIsJoinedByClangsAtTheLink) {
  EXPECT_THAT(text_for({"a.o", "-lgomp", "-o", "a"}), HasSubstr("-Xcompiler -fopenmp"));
  EXPECT_THAT(text_for({"-c", "a.cu"}), Not(HasSubstr("-fopenmp")));
}

// A file in the test's directory, gone with it.
struct OptionFile {
  explicit OptionFile(const std::string &text) {
    const int file = ::mkstemp(path);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
  }
  ~OptionFile() { ::unlink(path); }
  char path[32] = "/tmp/heddle-options.XXXXXX";
};

TEST(Options, FilesOfOptionsAreReadInTheirPlace) {
  const OptionFile inner("-DX=\"a b\" a.cu\n"), outer(std::string("-O3 --options-file ") + inner.path + " -c");
  for (const Arguments &given :
       {Arguments{"-v", std::string("@") + outer.path, "-o", "a"}, Arguments{"-v", "-optf", outer.path, "-o", "a"},
        Arguments{"-v", std::string("--options-file=") + outer.path, "-o", "a"}}) {
    Arguments expanded = given;
    EXPECT_EQ(expandFiles(expanded), "");
    EXPECT_THAT(expanded, ElementsAre("-v", "-O3", "-DX=a b", "a.cu", "-c", "-o", "a"));
  }
}

TEST(Options, AMissingFileAndOneThatNamesItselfAreErrors) {
  Arguments missing{"@/nowhere/options"};
  EXPECT_THAT(expandFiles(missing), HasSubstr("/nowhere/options"));
  OptionFile itself("");
  std::ofstream(itself.path) << "@" << itself.path;
  Arguments endless{std::string("@") + itself.path};
  EXPECT_THAT(expandFiles(endless), HasSubstr("without end"));
}

TEST(Advice, SaysOnceWhatToDoAboutThingsThatLeftCuda) {
  const auto advice = adviceFor("a.cu(28): error: texture is not a template\n"
                                "a.cu(9): error: identifier \"cudaBindTexture\" is undefined\n");
  EXPECT_THAT(advice, ElementsAre(HasSubstr("cudaCreateTextureObject")));
  EXPECT_THAT(adviceFor("a.cu(3): error: expected a \";\"\n"), IsEmpty());
}

TEST(Process, KeepsWhatTheProgramWroteAndItsStatus) {
  std::string errors;
  EXPECT_EQ(runWatched("sh", {"-c", "echo wrong >&2; exit 3"}, errors), 3);
  EXPECT_EQ(errors, "wrong\n");
  EXPECT_EQ(runWatched("sh", {"-c", "kill -TERM $$"}, errors), 128 + 15);
  EXPECT_EQ(runQuietly("sh", {"-c", "exit 1"}), 1);
}

TEST(Command, RemarksGoToClang) {
  EXPECT_THAT(text_for({"-Rpass=heddle", "a.cu"}), HasSubstr("-Xcompiler -Rpass=heddle "));
}

TEST(Command, AProgramFindsTheSharedRuntimeWithoutHeddle) {
  EXPECT_THAT(text_for({"a.cu", "-o", "a"}),
              HasSubstr("-cudart shared -Xlinker --enable-new-dtags -Xlinker -rpath -Xlinker /cuda/lib64 "));
  EXPECT_THAT(text_for({"-c", "a.cu"}), Not(HasSubstr("-rpath")));
  EXPECT_THAT(text_for({"-cudart=static", "a.cu"}), Not(HasSubstr("shared")));
}

TEST(Environment, HoldsWhatTheCommandAdds) {
  const auto variables = environmentFor(tools);
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].second, "clang++-19");
  EXPECT_THAT(variables[1].second, HasSubstr("-Xcompiler -fpass-plugin=/lib/pass.so"));
  EXPECT_THAT(variables[1].second, Not(HasSubstr("-ccbin")));
  EXPECT_THAT(variables[1].second, Not(HasSubstr("x.cu")));
}

TEST(Table, CopiesOfALaunchAreOneLineWithTheBestOfTheirVerdicts) {
  const std::string table = tableOf("a.cu:7\trun()\tadd\tlazy\tthe pointer is parameter 'A'\n"
                                    "a.cu:7\tmain\tadd\tbound\t3 buffers\n"
                                    "a.cu:9\tmain\tscale\tlazy\tbecause\n");
  EXPECT_EQ(table, "a.cu:7  add    bound   3 buffers\n"
                   "a.cu:9  scale  lazy    because\n"
                   "heddle cc: 2 launches: 1 bound, 0 partly, 1 lazy\n");
}

TEST(Report, NamesTemplatesAsAPersonWould) {
  const std::string Kernel = "void cub::CUB_300001_SM_900::DeviceScanKernel<cub::Policy<int, 4>, (cub::Mode)1, "
                             "thrust::THRUST_300001_SM_900_NS::plus<int>>(int*, cub::Tile<int>, unsigned int)";
  const std::string Line = "a.cu:7\tmain\t" + Kernel + "\tbound\t3 buffers\n";
  EXPECT_EQ(tableOf(Line).substr(0, tableOf(Line).find('\n')), "a.cu:7  cub::DeviceScanKernel<...>  bound   3 buffers");
  EXPECT_NE(tableOf(Line, /*FullNames=*/true).find(Kernel), std::string::npos);
}

TEST(Names, KeepWhatIsAName) {
  EXPECT_EQ(shortNameOf("add"), "add");
  EXPECT_EQ(shortNameOf("add(int*, int)"), "add");
  EXPECT_EQ(shortNameOf("void (anonymous namespace)::step<float>(float*)"), "(anonymous namespace)::step<...>");
  EXPECT_EQ(shortNameOf("std::vector<int> run<1>(std::vector<int>)"), "run<...>");
  EXPECT_EQ(shortNameOf("(anonymous namespace)::add(int*)"), "(anonymous namespace)::add");
  EXPECT_EQ(shortNameOf("Vec::operator()(int)"), "Vec::operator()(int)");
  EXPECT_EQ(shortNameOf("SM_90"), "SM_90");
}

} // namespace
} // namespace heddle::compiler
