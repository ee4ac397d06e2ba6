#include "device/software/context.h"

#include <sys/stat.h>

#include <algorithm>

#include "device/software/launch_check.h"
#include "device/software/simt/check/checked_kernel.h"

namespace heddle::software {
namespace {

bool is_power_of_two_up_to_4(uint32_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4;
}

Status check_model(const DeviceModel& model) {
  if (model.sms == 0 || model.warp_size != kLanes || model.max_threads_per_sm < model.max_threads_per_block)
    return fail(ErrorCode::kInvalidArgument,
                "device model '%.63s': %u SMs, warps of %u, %u threads per SM: cannot be simulated", model.name,
                model.sms, model.warp_size, model.max_threads_per_sm);
  return {};
}

// Whether nobody has touched the memory yet: it holds no pages then.
bool is_fresh(const Fd& memory) {
  struct stat status = {};
  return fstat(memory.get(), &status) == 0 && status.st_blocks == 0;
}

// Far beyond any memory; keeps the product from overflowing.
constexpr uint64_t kMostBytes = 1ull << 48;

Status check_extent(const char* what, uint64_t width, uint64_t height, uint64_t depth) {
  uint64_t rows = 0, bytes = 0;
  bool overflow = __builtin_mul_overflow(height, depth, &rows) || __builtin_mul_overflow(rows, width, &bytes);
  if (!overflow && rows <= kMostBytes && bytes <= kMostBytes) return {};
  return fail(ErrorCode::kInvalidArgument, "%s of %llu x %llu x %llu bytes is larger than any memory", what,
              static_cast<unsigned long long>(width), static_cast<unsigned long long>(height),
              static_cast<unsigned long long>(depth));
}

}  // namespace

Result<std::unique_ptr<SoftwareContext>> SoftwareContext::open(const device::ContextOptions& options, const Fd& board) {
  HEDDLE_TRY(check_model(options.model));
  auto memory = DeviceMemory::create(options.window_base, options.window_bytes);
  if (!memory) return tl::unexpected(memory.error());
  std::unique_ptr<SoftwareContext> context(new SoftwareContext(options, std::move(*memory)));
  HEDDLE_TRY(context->start_engine(board));
  return context;
}

SoftwareContext::SoftwareContext(const device::ContextOptions& options, DeviceMemory memory)
    : options_(options), memory_(std::move(memory)), libraries_(std::max(options.host_threads, 1u)) {}

Status SoftwareContext::start_engine(const Fd& board) {
  auto pacer = Pacer::open(options_.model, board, options_.sms);
  if (!pacer) return tl::unexpected(pacer.error());
  Engine::Setting setting{options_.model, std::max(options_.host_threads, 1u)};
  auto engine = Engine::start(setting, memory_, libraries_, completions_, std::move(*pacer));
  if (!engine) return tl::unexpected(engine.error());
  engine_ = std::move(*engine);
  return {};
}

Status SoftwareContext::map(uint64_t address, Bytes size, const Fd& memory, bool host) {
  HEDDLE_TRY(memory_.map(address, size, memory));
  // What the program writes to its own memory nobody sees, nor what an earlier context did.
  if (checks_ && (host || !is_fresh(memory))) checks_->written.mark(address, size.value);
  if (checks_) mapped_.add(address, size.value, {});
  return {};
}

Status SoftwareContext::unmap(uint64_t address, Bytes size) {
  HEDDLE_TRY(memory_.unmap(address, size));
  if (checks_) checks_->written.forget(address, size.value);
  mapped_.remove(address);
  return {};
}

Result<device::Module*> SoftwareContext::load(std::span<const std::byte> fatbin) {
  auto program = Program::load(fatbin, capability(), memory_);
  if (!program) return tl::unexpected(program.error());
  if (checks_) (*program)->read_effects(fatbin, capability());
  programs_.push_back(std::move(*program));
  return programs_.back().get();
}

Result<device::Kernel*> SoftwareContext::kernel(device::Module& module, std::string_view name) {
  auto found = static_cast<Program&>(module).kernel(name);
  if (!found) return tl::unexpected(found.error());
  return *found;
}

Result<device::Variable> SoftwareContext::variable(device::Module& module, std::string_view name) {
  return static_cast<Program&>(module).variable(name);
}

TextureTable& SoftwareContext::own_textures() {
  if (textures_in_use_) textures_ = std::make_shared<TextureTable>(*textures_);
  textures_in_use_ = false;
  return *textures_;
}

Status SoftwareContext::set_texture(uint64_t handle, const Texture& texture) {
  HEDDLE_TRY(check(texture));
  if (own_textures().set(handle, texture)) return {};
  return fail(ErrorCode::kInvalidArgument, "the number of texture object %#llx is taken by another one",
              static_cast<unsigned long long>(handle));
}

Status SoftwareContext::remove_texture(uint64_t handle) {
  if (own_textures().erase(handle)) return {};
  return fail(ErrorCode::kNotFound, "there is no texture or surface object %#llx",
              static_cast<unsigned long long>(handle));
}

Status SoftwareContext::check_kernels(const device::FindingSink& sink) {
  auto written = WrittenMemory::create(options_.window_base, options_.window_bytes);
  if (!written) return tl::unexpected(written.error());
  checks_ = std::make_unique<Checks>(sink, std::move(*written));
  memory_.note_writes(&checks_->written);
  return {};
}

Status SoftwareContext::set_limit(device::Limit limit, uint64_t bytes) {
  if (limit == device::Limit::kPendingLaunches) return {};
  if (limit == device::Limit::kHeapBytes) return memory_.set_heap_bytes(bytes);
  if (bytes > kMostStackBytes)
    return fail(ErrorCode::kInvalidArgument, "a stack of %llu bytes for each thread, at most %u are possible",
                static_cast<unsigned long long>(bytes), kMostStackBytes);
  stack_bytes_ = static_cast<uint32_t>(bytes);
  return {};
}

Result<uint32_t> SoftwareContext::open_library(library::Library library) {
  return libraries_.open(library);
}

Status SoftwareContext::create_stream(device::StreamIndex index, bool non_blocking, int priority) {
  return engine_->create_stream(index, non_blocking, priority);
}

Status SoftwareContext::destroy_stream(device::StreamIndex index) {
  return engine_->destroy_stream(index);
}

template <class Work>
Status SoftwareContext::submit(device::StreamIndex stream, device::Tag tag, Work work) {
  auto operation = std::make_unique<Operation>();
  operation->tag = tag;
  operation->work = std::move(work);
  return engine_->submit(stream, std::move(operation));
}

Status SoftwareContext::launch(device::StreamIndex stream, device::Kernel& kernel, const device::LaunchConfig& config,
                               device::Tag tag) {
  auto& known = static_cast<ProgramKernel&>(kernel);
  auto share = check_launch(known, config, options_.model);
  if (!share) return tl::unexpected(share.error());
  const uint32_t sms = options_.sms == 0 ? options_.model.sms : std::min(options_.sms, options_.model.sms);
  uint64_t capacity = uint64_t{fitting(sm_of(options_.model).whole, *share)} * sms;
  if (config.cooperative && config.grid.count() > capacity)
    return fail(ErrorCode::kLimitExceeded,
                "cooperative launch of '%s': %llu blocks, %u of the device's %u SMs hold %llu at once",
                known.code->name.c_str(), static_cast<unsigned long long>(config.grid.count()), sms, options_.model.sms,
                static_cast<unsigned long long>(capacity));
  if (known.allocates) HEDDLE_TRY(memory_.make_heap());
  if (checks_ && !known.checked) known.checked = with_checks(*known.code);
  textures_in_use_ = true;
  Grid::Setting setting{
      &memory_, options_.print, options_.model.sms, next_grid_++, 0, stack_bytes_, textures_, checks_.get(), {}};
  if (config.cooperative) {
    auto workspace = memory_.grid_workspace(setting.id);
    if (!workspace) return tl::unexpected(workspace.error());
    setting.workspace = *workspace;
  }
  if (checks_) setting.declared = declared_access(*known.program, known, config.parameters, mapped_);
  auto grid = std::make_shared<Grid>(known, config, *share, setting);
  grid->capacity = capacity;
  grid->cooperative = config.cooperative;
  return submit(stream, tag, LaunchWork{std::move(grid)});
}

Status SoftwareContext::copy(device::StreamIndex stream, device::CopyDirection direction,
                             const device::CopyShape& shape, device::Tag tag) {
  HEDDLE_TRY(check_extent("copy", shape.width, shape.height, shape.depth));
  return submit(stream, tag, CopyWork{direction, shape});
}

Status SoftwareContext::fill(device::StreamIndex stream, const device::FillShape& shape, device::Tag tag) {
  if (!is_power_of_two_up_to_4(shape.element_bytes))
    return fail(ErrorCode::kInvalidArgument, "fill with elements of %u bytes: 1, 2 and 4 are possible",
                shape.element_bytes);
  HEDDLE_TRY(check_extent("fill", shape.width, shape.height, shape.depth));
  return submit(stream, tag, FillWork{shape});
}

Status SoftwareContext::call(device::StreamIndex stream, const library::Call& call, device::Tag tag) {
  auto demand = library::demand(call);
  if (!demand) return tl::unexpected(demand.error());
  if (auto opened = libraries_.open(call.library); !opened) return tl::unexpected(opened.error());
  LibraryWork work{call.library, call.function, {call.words.begin(), call.words.end()}, std::move(*demand)};
  return submit(stream, tag, std::move(work));
}

Status SoftwareContext::mark(device::StreamIndex stream, device::Tag tag) {
  return submit(stream, tag, MarkWork{});
}

Status SoftwareContext::wait(device::StreamIndex stream, device::Tag awaited, device::Tag tag) {
  return submit(stream, tag, WaitWork{awaited});
}

Status SoftwareContext::hold(device::StreamIndex stream, device::Tag tag) {
  return submit(stream, tag, HoldWork{});
}

Status SoftwareContext::release(device::Tag tag) {
  return engine_->release(tag);
}

size_t SoftwareContext::completions(std::span<device::Completion> out, Duration timeout) {
  return completions_.take(out, timeout);
}

void SoftwareContext::wake() {
  completions_.wake();
}

}  // namespace heddle::software

namespace heddle::device {

Bytes software_board_bytes(const DeviceModel& model) {
  return software::Board::bytes(model);
}

Result<std::unique_ptr<Context>> open_software_context(const ContextOptions& options, const Fd& board) {
  auto context = software::SoftwareContext::open(options, board);
  if (!context) return tl::unexpected(context.error());
  return std::move(*context);
}

}  // namespace heddle::device
