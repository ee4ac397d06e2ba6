# Prints "METHODS FILE: CLASS" for each class of the headers that it is given: how many member functions it declares,
# without constructors, destructors and operators. For code as clang-format writes it.
function is_function(text) {
  while (gsub(/<[^<>]*>/, "", text)) {}  # std::function<void()> is no function's declaration
  if (text !~ /[A-Za-z0-9_][ ]*\(/ || text ~ /^ *(template *)?(friend|using|static_assert|typedef) /) return 0
  if (text ~ /operator|= *delete/) return 0
  sub(/\(.*/, "", text)   # up to the first parenthesis: type and name, or a member and its initializer
  if (text ~ /=/) return 0
  sub(/ +$/, "", text)
  sub(/.*[ *&>~]/, "", text)
  return text != class[depth] && text != ""
}
FNR == 1 { depth = paren = 0; text = "" }
/^[ \t]*#/ { next }
{
  line = $0
  gsub(/"([^"\\]|\\.)*"/, "", line)
  gsub(/'([^'\\]|\\.)'/, "", line)
  sub(/\/\/.*/, "", line)
  length_of_line = length(line)
  for (i = 1; i <= length_of_line; ++i) {
    c = substr(line, i, 1)
    if (c == "(") ++paren
    if (c == ")") --paren
    if (c == "{" && paren == 0) {
      if (depth in class && is_function(text)) ++methods[depth]
      ++depth
      if (text ~ /(^|[ >])(class|struct) [A-Za-z_0-9]+( final)? *(:.*)?$/ && text !~ /enum |[(=]/) {
        name = text
        sub(/.*(class|struct) /, "", name)   # the last one: behind those of a template's parameters
        sub(/[ :].*/, "", name)
        class[depth] = name
        methods[depth] = 0
      }
      text = ""
    } else if (c == "}" && paren == 0) {
      if (depth in class) {
        print methods[depth], FILENAME ": " class[depth]
        delete class[depth]
      }
      --depth
      text = ""
    } else if (c == ";" && paren == 0) {
      if (depth in class && is_function(text)) ++methods[depth]
      text = ""
    } else if (c == ":" && text ~ /^ *(public|private|protected)$/) {
      text = ""
    } else {
      text = text c
    }
  }
  text = text " "
}
