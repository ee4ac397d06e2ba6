#include "worker/session.h"

namespace heddle::worker {

Result<std::unique_ptr<Session>> Session::start(const Fd& ring, const Fd& control, Options options,
                                                device::Context& context, Printer& printer, Outbox& outbox) {
  auto memory = protocol::RingMemory::attach(ring);
  if (!memory) return tl::unexpected(std::move(memory).error());
  auto page = protocol::ControlPage::attach(control);
  if (!page) return tl::unexpected(std::move(page).error());
  auto lease = protocol::ControlPage::attach(control);
  if (!lease) return tl::unexpected(std::move(lease).error());
  auto notes = protocol::ControlPage::attach(control);
  if (!notes) return tl::unexpected(std::move(notes).error());
  const auto left = UsageMeter::left_on(*page);
  if (!left) return tl::unexpected(left.error());
  auto owned = std::make_unique<protocol::RingMemory>(std::move(*memory));
  auto saved = protocol::SavedVariables::attach(control);
  if (!saved) return tl::unexpected(std::move(saved).error());
  auto undo = protocol::UndoLog::attach(control);
  if (!undo) return tl::unexpected(std::move(undo).error());
  const protocol::LogState log = notes->log();
  const Duration long_from = notes->long_from();
  const SaveBudget budget =
      options.guarded ? SaveBudget::guarded(notes->save_permille()) : SaveBudget(notes->save_permille());
  auto commit = std::make_unique<Commit>(*owned, std::move(*notes), outbox);
  commit->show_again(log);
  auto progress = Progress::create(*owned, *commit);
  if (!progress) return tl::unexpected(std::move(progress).error());
  auto reader = protocol::RingReader::attach(*owned, log.record_head, log.completed);
  if (!reader) return tl::unexpected(std::move(reader).error());
  std::unique_ptr<Session> session(
      new Session(std::move(owned), {std::move(*page), *left, std::move(*saved), std::move(*undo), long_from, budget},
                  std::move(commit), std::move(*progress), std::move(options), context, printer));
  printer.attach(*session->ring_, *session->commit_);
  if (session->ring_->header().checks.load(std::memory_order_acquire))
    HEDDLE_TRY(context.check_kernels([&printer](std::string_view text) { printer.report_finding(text); }));
  const auto bulk = session->ring_->bulk();
  context.pin_later(reinterpret_cast<uintptr_t>(bulk.data()), Bytes{bulk.size()});
  session->run(*reader, std::move(*lease), log);
  return session;
}

Session::Session(std::unique_ptr<protocol::RingMemory> ring, Page page, std::unique_ptr<Commit> commit,
                 std::unique_ptr<Progress> progress, Options options, device::Context& context, Printer& printer)
    : ring_(std::move(ring)),
      commit_(std::move(commit)),
      progress_(std::move(progress)),
      printer_(printer),
      options_(std::move(options)),
      fault_(*ring_, *commit_, printer, options_.shared_faults),
      usage_(std::move(page.usage), page.left),
      modules_(context, options_.read, 10 * options_.model.capability_major + options_.model.capability_minor,
               page.undo.capacity().value > 0, !options_.variables_stay),
      own_copies_(context),
      variables_(own_copies_, modules_, *commit_, *progress_, std::move(page.saved), options_.variables_stay),
      long_work_(page.long_from),
      guard_(options_.guarded, *commit_),
      epoch_(*ring_, modules_, own_copies_, *commit_, *progress_, variables_, long_work_, page.budget, guard_,
             std::move(page.undo), ring_->buffers(options_.window.base), options_.all_sms),
      reports_(context, *ring_, *commit_),
      parts_{context,    *ring_,     *commit_,    *progress_, fault_,     usage_,
             in_flight_, variables_, own_copies_, epoch_,     long_work_, reports_},
      completions_(parts_) {}

// Of the same task, so that somebody was at it before; or of one before it, which has left values in the variables of
// the program's modules. Else what was noted for one that goes on is of no use.
void Session::run(protocol::RingReader reader, protocol::ControlPage lease, const protocol::LogState& log) {
  const bool goes_on = log.task == options_.task_serial;
  const bool has_variables = log.task != 0 && !log.reset && log.variables_written != 0;
  if (!goes_on) commit_->begin_task(options_.task_serial, !has_variables);
  const Issuer::Binding binding{options_.model, options_.window, options_.task_serial,
                                goes_on || has_variables ? std::optional(log) : std::nullopt};
  issuer_ = std::make_unique<Issuer>(parts_, modules_, binding, reader, WorkerLease(std::move(lease)));
  parts_.context.awaited_by([this](bool reported) {
    const uint64_t completed = progress_->completed();
    const protocol::RingHeader& header = ring_->header();
    return header.watched.load(std::memory_order_relaxed) > completed || progress_->wakes_issuer() ||
           (!reported && header.wanted.load(std::memory_order_relaxed) > completed);
  });
  completing_ = std::thread([this] { completions_.run(); });
  issuing_ = std::thread([this] { issuer_->run(); });
}

Session::~Session() {
  if (issuing_.joinable()) {
    issuer_->stop();
    issuing_.join();
  }
  if (completing_.joinable()) {
    completions_.stop();
    completing_.join();
  }
  printer_.detach();
}

}  // namespace heddle::worker
