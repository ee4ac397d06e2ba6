// The list of forms. Tolerances are PTX's documented bounds on the device's error, with room for our own last bit.

#include <initializer_list>

#include "form.h"

namespace heddle::numerics {
namespace {

using Words = std::initializer_list<const char*>;
using Text = std::string;

class List {
 public:
  void add(const Text& code, const Text& result, std::vector<Text> sources, Tolerance tolerance = {}) {
    forms_.push_back({code, result, std::move(sources), tolerance});
  }
  // "<name> %d, %a, ...;" with as many sources as there are types.
  void plain(const Text& name, const Text& result, std::vector<Text> sources, Tolerance tolerance = {}) {
    static const char* kNames[] = {", %a", ", %b", ", %c"};
    Text code = name + " %d";
    for (size_t i = 0; i < sources.size(); ++i) code += kNames[i];
    add(code + ";", result, std::move(sources), tolerance);
  }
  // A predicate in %p as result.
  void test(const Text& code, std::vector<Text> sources) {
    add(code + " selp.u32 %d, 1, 0, %p;", "u32", std::move(sources));
  }
  std::vector<Form> take() { return std::move(forms_); }

 private:
  std::vector<Form> forms_;
};

const Words kIntegers = {"u16", "s16", "u32", "s32", "u64", "s64"};
const Words kBytesToo = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
const Words kRoundings = {".rn", ".rz", ".rm", ".rp"};
const Words kHalves = {"f16", "bf16", "f16x2", "bf16x2"};

bool is(const Text& text, Words words) {
  for (const char* word : words)
    if (text == word) return true;
  return false;
}
Text bits_of(const Text& type) {
  return "b" + type.substr(1);
}
Text unsigned_of(const Text& type) {
  return "u" + type.substr(1);
}
Text wide_of(const Text& type) {
  return type.substr(0, 1) + (type.substr(1) == "16" ? "32" : "64");
}

void integers(List& list) {
  for (Text t : kIntegers) {
    for (Text op : {"add.", "sub.", "mul.lo.", "mul.hi.", "div.", "rem.", "min.", "max."})
      list.plain(op + t, t, {t, t});
    for (Text op : {"mad.lo.", "mad.hi."}) list.plain(op + t, t, {t, t, t});
    list.plain("sad." + t, unsigned_of(t), {t, t, unsigned_of(t)});
    if (t[0] == 's') list.plain("neg." + t, t, {t});
    if (t[0] == 's') list.plain("abs." + t, t, {t});
    if (is(t, {"u64", "s64"})) continue;
    list.plain("mul.wide." + t, wide_of(t), {t, t});
    list.plain("mad.wide." + t, wide_of(t), {t, t, wide_of(t)});
  }
  for (Text op : {"add.sat.s32", "sub.sat.s32"}) list.plain(op, "s32", {"s32", "s32"});
  list.plain("mad.hi.sat.s32", "s32", {"s32", "s32", "s32"});
  for (Text t : {"u32", "s32"})
    for (Text half : {"lo", "hi"}) {
      list.plain("mul24." + half + "." + t, t, {t, t});
      list.plain("mad24." + half + "." + t, t, {t, t, t});
    }
  list.plain("mad24.hi.sat.s32", "s32", {"s32", "s32", "s32"});
  for (Text a : {".u32", ".s32"})
    for (Text b : {".u32", ".s32"}) {
      list.plain("dp4a" + a + b, "u32", {"u32", "u32", "u32"});
      for (Text half : {".lo", ".hi"}) list.plain("dp2a" + half + a + b, "u32", {"u32", "u32", "u32"});
    }
  for (Text op : {"add.", "min.", "max."})
    for (Text t : {"u16x2", "s16x2"}) list.plain(op + t, "u32", {"u32", "u32"});
  for (Text op : {"min.relu.", "max.relu."})
    for (Text t : {"s16x2", "s32"}) list.plain(op + t, "u32", {"u32", "u32"});
}

void carries(List& list) {
  for (Text t : {"u32", "s32", "u64", "s64"}) {
    Text spare = t.substr(1) == "32" ? "%t0" : "%w0";
    list.add("add.cc." + t + " " + spare + ", %a, %b; addc." + t + " %d, %c, %a;", t, {t, t, t});
    list.add("sub.cc." + t + " " + spare + ", %a, %b; subc." + t + " %d, %c, %a;", t, {t, t, t});
    list.add("add.cc." + t + " " + spare + ", %a, %b; addc.cc." + t + " " + spare + ", " + spare + ", %c; addc." + t +
                 " %d, " + spare + ", 0;",
             t, {t, t, t});
    list.add("sub.cc." + t + " " + spare + ", %a, %b; subc.cc." + t + " " + spare + ", " + spare + ", %c; subc." + t +
                 " %d, " + spare + ", 0;",
             t, {t, t, t});
    for (Text half : {"lo", "hi"}) {
      list.add("mad." + half + ".cc." + t + " " + spare + ", %a, %b, %c; addc." + t + " %d, " + spare + ", 0;", t,
               {t, t, t});
      list.add("add.cc." + t + " " + spare + ", %a, %b; madc." + half + "." + t + " %d, %a, %b, %c;", t, {t, t, t});
      list.add("add.cc." + t + " " + spare + ", %a, %b; madc." + half + ".cc." + t + " " + spare +
                   ", %a, %b, %c; addc." + t + " %d, " + spare + ", 0;",
               t, {t, t, t});
    }
  }
}

void bits(List& list) {
  for (Text t : {"b16", "b32", "b64"}) {
    Text u = "u" + t.substr(1);
    for (Text op : {"and.", "or.", "xor."}) list.plain(op + t, u, {u, u});
    for (Text op : {"not.", "cnot."}) list.plain(op + t, u, {u});
    list.plain("shl." + t, u, {u, "at"});
    list.plain("shr." + t, u, {u, "at"});
    if (t == "b16") continue;
    for (Text op : {"popc.", "clz."}) list.plain(op + t, "u32", {u});
    list.plain("brev." + t, u, {u});
    list.add("bfi." + t + " %d, %a, " + (t == "b32" ? "0x12345678" : "0x123456789ABCDEF0") + ", %b, %c;", u,
             {u, "at", "at"});
    list.add("bfi." + t + " %d, -1, %a, %b, %c;", u, {u, "at", "at"});
  }
  for (Text t : kIntegers) list.plain("shr." + t, t, {t, "at"});
  for (Text t : {"u32", "s32", "u64", "s64"}) {
    list.plain("bfe." + t, t, {t, "at", "at"});
    list.plain("bfind." + t, "u32", {t});
    list.plain("bfind.shiftamt." + t, "u32", {t});
  }
  for (Text t : {"u32", "s32"})
    for (Text mode : {".clamp.", ".wrap."}) list.plain("szext" + mode + t, t, {t, "at"});
  for (Text mode : {".clamp", ".wrap"}) {
    list.plain("bmsk" + mode + ".b32", "u32", {"at", "at"});
    for (Text side : {"l", "r"}) list.plain("shf." + side + mode + ".b32", "u32", {"u32", "u32", "at"});
  }
  for (Text mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
    list.plain("prmt.b32" + mode, "u32", {"u32", "u32", "u32"});
  for (Text table : {"0x00", "0x80", "0xFE", "0x96", "0xE8", "0xCA", "0x1B", "0x6A", "0xFF"})
    list.add("lop3.b32 %d, %a, %b, %c, " + table + ";", "u32", {"u32", "u32", "u32"});
  for (Text op : {"or", "and"})
    list.add("lop3." + op + ".b32 %d|%p, %a, %b, %c, 0x28, %r; @%p xor.b32 %d, %d, 0x55555555;", "u32",
             {"u32", "u32", "u32"});
  list.add("shr.s32 %t0, %b, 25; fns.b32 %d, %a, %c, %t0;", "u32", {"u32", "u32", "at"});
  for (Text t : {"u16", "u8"})
    list.plain("cvt.pack.sat." + t + ".s32" + (t == "u16" ? "" : ".b32"), "u32",
               t == "u16" ? std::vector<Text>{"s32", "s32"} : std::vector<Text>{"s32", "s32", "u32"});
  list.plain("cvt.pack.sat.s16.s32", "u32", {"s32", "s32"});
  list.plain("cvt.pack.sat.s8.s32.b32", "u32", {"s32", "s32", "u32"});
}

// The video instructions that CUDA's SIMD intrinsics and samples use.
void video(List& list) {
  for (Text op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
    for (Text types : {".s32.s32.s32", ".u32.u32.u32", ".s32.u32.s32"})
      for (Text sat : {"", ".sat"}) {
        list.plain(op + types + sat, "u32", {"u32", "u32"});
      }
  for (Text op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"})
    for (Text lanes : {"2", "4"})
      for (Text types : {".u32.u32.u32", ".s32.s32.s32"}) {
        list.plain(op + lanes + types, "u32", {"u32", "u32", "u32"});
        if (op != "vavrg") list.plain(op + lanes + types + ".sat", "u32", {"u32", "u32", "u32"});
        list.plain(op + lanes + types + ".add", "u32", {"u32", "u32", "u32"});
      }
}

void comparisons(List& list) {
  for (Text t : kIntegers) {
    for (Text op : {"eq", "ne", "lt", "le", "gt", "ge"}) list.test("setp." + op + "." + t + " %p, %a, %b;", {t, t});
    if (t[0] == 'u')
      for (Text op : {"lo", "ls", "hi", "hs"}) list.test("setp." + op + "." + t + " %p, %a, %b;", {t, t});
    list.add("selp." + t + " %d, %a, %b, %r;", t, {t, t});
    for (Text by : {"s32", "f32"}) list.plain("slct." + t + "." + by, t, {t, t, by});
  }
  for (Text t : {"u16", "u32", "u64"})
    for (Text op : {"eq", "ne"}) list.test("setp." + op + "." + bits_of(t) + " %p, %a, %b;", {t, t});
  for (Text combine : {"and", "or", "xor"}) {
    for (Text t : {"f16", "bf16"}) list.test("setp.lt." + combine + "." + t + " %p, %a, %b, %r;", {t, t});
    for (Text t : {"s32", "f32"})
      list.add("setp.lt." + combine + "." + t + " %p|%q, %a, %b, %r; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;",
               "u32", {t, t});
  }
  for (Text t : {"f32", "ftz.f32", "f64", "f16", "ftz.f16", "bf16"}) {
    Text type = t.substr(t.find('.') == Text::npos ? 0 : t.find('.') + 1);
    for (Text op : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
      list.test("setp." + op + "." + t + " %p, %a, %b;", {type, type});
  }
  for (Text t : {"f16x2", "bf16x2", "ftz.f16x2"})
    for (Text op : {"eq", "lt", "geu", "nan", "ne", "num"}) {
      Text type = t.substr(t.find('.') == Text::npos ? 0 : t.find('.') + 1);
      list.add("setp." + op + "." + t + " %p|%q, %a, %b; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", "u32",
               {type, type});
      list.add("setp." + op + ".and." + t + " %p|%q, %a, %b, %r; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", "u32",
               {type, type});
    }
  for (Text t : {"u32", "s32", "u64", "f32", "f64"}) {
    list.plain("set.lt.u32." + t, "u32", {t, t});
    list.plain("set.ge.f32." + t, "f32", {t, t});
    list.add("set.eq.or.s32." + t + " %d, %a, %b, !%r;", "u32", {t, t});
  }
  for (Text t : {"f16", "bf16"}) {
    for (Text d : {"u16", "s16", "u32", "s32"}) list.plain("set.ltu." + d + "." + t, d, {t, t});
    list.plain("set.le." + t + "." + t, t, {t, t});
    list.plain("set.gt." + t + "x2." + t + "x2", t + "x2", {t + "x2", t + "x2"});
  }
  for (Text t : {"u16", "u32", "s32"}) list.plain("set.ne.f16." + t, "f16", {t, t});
  for (Text t : {"f32", "f64"})
    for (Text kind : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
      list.test("testp." + kind + "." + t + " %p, %a;", {t});
}

void floats(List& list) {
  for (Text op : {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"}) {
    std::vector<Text> singles(op == "fma" ? 3 : is(op, {"rcp", "sqrt"}) ? 1 : 2, "f32");
    std::vector<Text> doubles(singles.size(), "f64");
    for (Text rounding : kRoundings) {
      for (Text ftz : {"", ".ftz"}) {
        list.plain(op + rounding + ftz + ".f32", "f32", singles);
        if (is(op, {"add", "sub", "mul", "fma"})) list.plain(op + rounding + ftz + ".sat.f32", "f32", singles);
      }
      list.plain(op + rounding + ".f64", "f64", doubles);
    }
  }
  for (Text op : {"add", "sub", "mul"})
    for (Text t : {"f32", "f64"}) list.plain(op + "." + t, t, {t, t});
  for (Text op : {"mad.rn", "mad.rz"})
    for (Text t : {"f32", "f64"}) list.plain(op + "." + t, t, {t, t, t});
  for (Text t : {"f32", "ftz.f32", "f64"}) {
    Text type = t.substr(t.find('.') == Text::npos ? 0 : t.find('.') + 1);
    for (Text op : {"neg.", "abs."}) list.plain(op + t, type, {type});
    for (Text op : {"min.", "max."}) list.plain(op + t, type, {type, type});
  }
  for (Text op : {"min", "max"})
    for (Text form :
         {".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN", ".ftz.xorsign.abs", ".ftz.NaN.xorsign.abs"})
      list.plain(op + form + ".f32", "f32", {"f32", "f32"});
  for (Text t : {"f32", "f64"}) list.plain("copysign." + t, t, {t, t});
}

// Close to zero, bounds are absolute: of .ftz forms one side may flush what the other does not.
void approximations(List& list) {
  const Tolerance tanh32{0x1p-10, 0};
  for (Text ftz : {"", ".ftz"}) {
    double least = ftz == "" ? 0x1p-147 : 0x1p-125;
    const Tolerance last_bits{3 * 0x1p-23, least};
    for (Text op : {"div.approx", "div.full"}) list.plain(op + ftz + ".f32", "f32", {"f32", "f32"}, last_bits);
    for (Text op : {"rcp", "sqrt", "rsqrt"}) list.plain(op + ".approx" + ftz + ".f32", "f32", {"f32"}, last_bits);
    for (Text op : {"sin", "cos"}) list.plain(op + ".approx" + ftz + ".f32", "f32", {"f32"}, {0, 0x1p-19});
    list.plain("lg2.approx" + ftz + ".f32", "f32", {"f32"}, {0x1p-21, 0x1p-21});
    list.plain("ex2.approx" + ftz + ".f32", "f32", {"f32"}, {0x1p-21, least});
  }
  list.plain("tanh.approx.f32", "f32", {"f32"}, tanh32);
  list.plain("rcp.approx.ftz.f64", "f64", {"f64"}, {0x1p-19, 0x1p-1021});
  list.plain("rsqrt.approx.ftz.f64", "f64", {"f64"}, {0x1p-19, 0});
  list.plain("rsqrt.approx.f64", "f64", {"f64"}, {0x1p-19, 0});
  for (Text t : {"f16", "f16x2"}) {
    list.plain("ex2.approx." + t, t, {t}, {0x1p-9, 0x1p-23});
    list.plain("tanh.approx." + t, t, {t}, {0, 0x1p-10});
  }
  for (Text t : {"bf16", "bf16x2"}) {
    list.plain("ex2.approx.ftz." + t, t, {t}, {0x1p-6, 0x1p-125});
    list.plain("tanh.approx." + t, t, {t}, {0, 0x1p-7});
  }
}

void halves(List& list) {
  for (Text t : kHalves) {
    bool half = t[0] == 'f';
    for (Text ftz : {"", ".ftz"}) {
      if (!half && ftz != "") continue;
      for (Text op : {"add", "sub", "mul"})
        for (Text form : {"", ".rn"}) {
          list.plain(op + form + ftz + "." + t, t, {t, t});
          if (half) list.plain(op + form + ftz + ".sat." + t, t, {t, t});
        }
      list.plain("fma.rn" + ftz + "." + t, t, {t, t, t});
      if (half) list.plain("fma.rn" + ftz + ".sat." + t, t, {t, t, t});
      list.plain("fma.rn" + ftz + ".relu." + t, t, {t, t, t});
      for (Text op : {"neg", "abs"}) list.plain(op + ftz + "." + t, t, {t});
      for (Text op : {"min", "max"})
        for (Text form : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"})
          list.plain(op + ftz + form + "." + t, t, {t, t});
    }
    list.plain("fma.rn.oob." + t, t, {t, t, t});
    list.plain("fma.rn.oob.relu." + t, t, {t, t, t});
  }
}

// Whether integers of type `s` may lie outside of `d`: PTX has .sat for those only.
bool may_clamp(const Text& d, const Text& s) {
  int to = std::stoi(d.substr(1)), from = std::stoi(s.substr(1));
  if (d[0] == s[0]) return to < from;
  return d[0] == 'u' || to <= from;
}

void conversions(List& list) {
  for (Text d : kBytesToo)
    for (Text s : kBytesToo) {
      // Narrow results come in a wider register too, which shows how they are extended.
      Text result = is(d, {"u64", "s64"}) ? d : "u32";
      list.plain("cvt." + d + "." + s, result, {s});
      if (may_clamp(d, s)) list.plain("cvt.sat." + d + "." + s, result, {s});
    }
  for (Text f : {"f16", "bf16", "f32", "f64"})
    for (Text i : kBytesToo) {
      if (f == "bf16" && is(i, {"u8", "s8"})) continue;
      for (Text rounding : kRoundings) list.plain("cvt" + rounding + "." + f + "." + i, f, {i});
      if (f == "bf16" && is(i, {"u16", "s16"})) continue;
      for (Text rounding : {".rni", ".rzi", ".rmi", ".rpi"}) {
        Text result = is(i, {"u64", "s64"}) ? i : "u32";
        list.plain("cvt" + rounding + "." + i + "." + f, result, {f});
        if (f == "f32") list.plain("cvt" + rounding + ".ftz." + i + "." + f, result, {f});
        if (f == "f32" && rounding == ".rni") list.plain("cvt" + rounding + ".sat." + i + "." + f, result, {f});
      }
    }
  for (Text f : {"f16", "bf16", "f32", "f64"}) {
    for (Text rounding : {".rni", ".rzi", ".rmi", ".rpi"}) {
      list.plain("cvt" + rounding + "." + f + "." + f, f, {f});
      if (f == "f32") list.plain("cvt" + rounding + ".ftz.f32.f32", f, {f});
      if (f == "f32") list.plain("cvt" + rounding + ".sat.f32.f32", f, {f});
    }
    if (f != "bf16") list.plain("cvt.sat." + f + "." + f, f, {f});
  }
  list.plain("cvt.f32.f32", "f32", {"f32"});
  list.plain("cvt.ftz.f32.f32", "f32", {"f32"});
  list.plain("cvt.ftz.sat.f32.f32", "f32", {"f32"});
  for (Text s : {"f16", "bf16"}) {
    for (Text d : {"f32", "f64"}) list.plain("cvt." + d + "." + s, d, {s});
    for (Text rounding : kRoundings)
      for (Text wide : {"f32", "f64"}) list.plain("cvt" + rounding + "." + s + "." + wide, s, {wide});
  }
  for (Text form : {"cvt.ftz.f32.f16", "cvt.sat.f32.f16", "cvt.ftz.sat.f32.f16"}) list.plain(form, "f32", {"f16"});
  for (Text rounding : kRoundings) {
    list.plain("cvt" + rounding + ".f32.f64", "f32", {"f64"});
    list.plain("cvt" + rounding + ".ftz.f32.f64", "f32", {"f64"});
    list.plain("cvt" + rounding + ".sat.f32.f64", "f32", {"f64"});
    list.plain("cvt" + rounding + ".ftz.f16.f32", "f16", {"f32"});
    list.plain("cvt" + rounding + ".sat.f16.f32", "f16", {"f32"});
    list.plain("cvt" + rounding + ".f16.bf16", "f16", {"bf16"});
    list.plain("cvt" + rounding + ".bf16.f16", "bf16", {"f16"});
  }
  list.plain("cvt.f64.f32", "f64", {"f32"});
  list.plain("cvt.ftz.f64.f32", "f64", {"f32"});
  list.plain("cvt.sat.f64.f32", "f64", {"f32"});
  for (Text rounding : {".rn", ".rz"})
    for (Text relu : {"", ".relu"}) {
      for (Text t : {"f16", "bf16"}) {
        if (relu != "") list.plain("cvt" + rounding + relu + "." + t + ".f32", t, {"f32"});
        list.plain("cvt" + rounding + relu + "." + t + "x2.f32", t + "x2", {"f32", "f32"});
      }
      list.plain("cvt" + rounding + relu + ".tf32.f32", "f32", {"f32"});
    }
  list.plain("cvt.rna.tf32.f32", "f32", {"f32"});
  for (Text t : {"e4m3x2", "e5m2x2"})
    for (Text relu : {"", ".relu"}) {
      list.add("cvt.rn.satfinite" + relu + "." + t + ".f32 %h0, %a, %b; cvt.u32.u16 %d, %h0;", "u32", {"f32", "f32"});
      list.add("cvt.rn.satfinite" + relu + "." + t + ".f16x2 %h0, %a; cvt.u32.u16 %d, %h0;", "u32", {"f16x2"});
      list.plain("cvt.rn" + relu + ".f16x2." + t, "f16x2", {"u16"});
    }
}

}  // namespace

std::vector<Form> all_forms() {
  List list;
  integers(list);
  carries(list);
  bits(list);
  video(list);
  comparisons(list);
  floats(list);
  approximations(list);
  halves(list);
  conversions(list);
  return list.take();
}

}  // namespace heddle::numerics
