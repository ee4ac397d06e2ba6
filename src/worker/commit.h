#pragma once

#include "protocol/control_page.h"
#include "protocol/ring_memory.h"
#include "worker/outbox.h"
#include "worker/refusal.h"
#include "worker/shown.h"

namespace heddle::worker {

// What the session's program, and heddled, are shown of what is done: the only place that writes it into the ring or
// says it to heddled. Before either it is noted on the control page, from which heddled and the next worker know it,
// should this one die. What is done inside the worker (stream order, event waits, space in its own tables) is
// Progress's.
//
// With durability off everything is committed as soon as it is done, so each call shows at once. While an epoch is open
// (epoch.h) what may have to be done again is held back here until its end: words of streams and events, the
// watermarks, printed text. Callers see to the order: what is shown of a record is shown once, before the watermark
// passes it. Thread-safe as far as the callers are for one word: streams, events, watermarks and what holds them back
// under Progress's lock, the fault under Fault's, printed text under Printer's.
class Commit {
 public:
  Commit(protocol::RingMemory& ring, protocol::ControlPage page, Outbox& outbox)
      : ring_(ring),
        page_(std::move(page)),
        outbox_(outbox),
        cut_(page_.log()),
        noted_(cut_),
        shown_(page_.log().shown),
        printed_(cut_.printed.tail),
        print_lost_(cut_.printed.lost) {}

  // Where the worker before stood, or this one stands.
  protocol::LogState log() const { return page_.log(); }
  // A new worker, before it takes records: shows what its forerunner may have noted and not shown.
  void show_again(const protocol::LogState& log);
  // Issuer. The page's words are of this task from now on; `fresh`: of this worker alone.
  void begin_task(uint64_t serial, bool fresh) { page_.begin_task(serial, fresh); }
  // Issuer, before the record is handed over: what it does cannot be done again.
  void affects(uint64_t sequence) {
    affected_ = sequence;
    page_.note_affected(sequence);
  }
  // Nobody else is there from whom the work would have to be protected.
  bool is_alone() const { return page_.is_alone(); }
  bool has_affected(uint64_t sequence) const { return affected_ >= sequence; }
  // The same, be it such that can be done again.
  void hands_over(uint64_t sequence) { page_.note_handed_over(sequence); }
  void reset() { page_.note_reset(); }
  // Issuer. What Variables notes for the next worker.
  void writes_variables(uint64_t sequence) { page_.note_variables_written(sequence); }
  void saved_variables(uint64_t sequence) {  // under Progress's lock
    cut_.variables_saved = sequence;
    if (!holding()) note_cut();
  }
  void obstructed(protocol::Obstacle obstacle) { page_.note_obstacle(obstacle); }
  bool loaded(const protocol::LoadedModule& module) { return page_.note_module(module); }
  protocol::LoadedModule loaded_module(uint64_t index) const { return page_.module(index); }
  // Issuer, before the task's last record is finished (0: it ends with what is done).
  void ends(uint64_t sequence, bool unmapped) { page_.note_end(sequence, unmapped); }

  // From now on what is done is held back.
  void hold() { holding_.store(true, std::memory_order_release); }
  bool holding() const { return holding_.load(std::memory_order_acquire); }
  // All that is held back can be shown: it is committed, or known to be beyond repetition (affects()).
  void release();
  // All that is held back is shown although it is not committed, since it would be repeated exactly. False, and nothing
  // is shown: text was printed, which the program sees with its commit only.
  bool show_ahead();
  // Whether streams can be committed ahead of the rest that is held back.
  bool may_release(const std::vector<protocol::StreamCuts::Cut>& streams) const;
  // They are, up to there; and so is the log up to `completed`, if that is more than is committed.
  void release(const std::vector<protocol::StreamCuts::Cut>& streams, uint64_t completed, uint64_t record_end);

  // All of the stream's records up to `sequence` are done.
  void stream(uint32_t stream, uint64_t sequence) {
    if (holding()) return held_.stream(stream, sequence);
    show_stream(ring_, stream, sequence);
  }
  void event(const Uncommitted::Event& reached) {
    if (holding()) return held_.event(reached);
    show_event(ring_, reached);
  }
  // The stream stands at the host call: the program's turn.
  void host_call(uint32_t stream, uint64_t sequence) {
    ring_.streams()[stream].host_reached.store(sequence, std::memory_order_release);
    ring_client();
  }
  // The log is done up to `completed`, whose record ends at `record_end`: its space is the program's again. Noted
  // before `say_here` says so in the worker, where somebody may say to heddled that nothing is left to do; shown behind
  // that.
  template <class SayHere>
  void log(uint64_t completed, uint64_t record_end, SayHere say_here) {
    cut_.completed = completed;
    cut_.record_head = record_end;
    if (!holding()) note_cut();
    say_here();
    if (!holding()) show(completed, record_end);
  }
  void ring_client() { protocol::ring_bell(ring_.header().to_client); }

  // The session's sticky fault, once.
  void fault(const Refusal& refusal);
  // To heddled alone: the device has failed, and it may be another program's fault.
  void possible_fault(const Refusal& refusal);

  // Areas of text; the tails and counts are the printer's own.
  // What kernels print comes before the end of their records, and so before the commit.
  void printed(uint64_t tail, uint64_t lost) {
    printed_.store(tail, std::memory_order_relaxed);
    print_lost_.store(lost, std::memory_order_relaxed);
    if (!holding()) show(printed());
  }
  void found(uint64_t findings) { ring_.header().findings.store(findings, std::memory_order_release); }
  void reported(uint64_t tail) { ring_.header().report_tail.store(tail, std::memory_order_release); }

  // To heddled: the segment is unmapped, and its memory may be given to others. 0: that of what was idle when heddled
  // asked has been said.
  void freed(uint64_t segment) {
    if (segment != 0) page_.note_freed(segment);
    outbox_.put(protocol::SegmentFreed{segment});
  }
  // To heddled. TaskEnded: everything of the task was shown; LeaseReturned: what was measured under that lease is on
  // the control page.
  template <class Message>
  void tell(const Message& message) {
    outbox_.put(message);
  }

 private:
  void show_record(const protocol::RecordHeader& record, TimePoint now);
  void tell_heddled(const Refusal& refusal, bool held_back);
  void show(uint64_t completed, uint64_t record_end) {
    protocol::RingHeader& header = ring_.header();
    header.completed.store(std::max(completed, shown_), std::memory_order_release);
    header.committed.store(completed, std::memory_order_release);
    header.record_head.store(record_end, std::memory_order_release);
  }
  void note_cut();
  // All that was printed for the ring so far, by earlier workers too: what note_cut() notes.
  protocol::Printed printed() const {
    return {printed_.load(std::memory_order_relaxed), print_lost_.load(std::memory_order_relaxed)};
  }
  void show(const protocol::Printed& printed);

  protocol::RingMemory& ring_;
  protocol::ControlPage page_;
  Outbox& outbox_;
  protocol::Cut cut_;    // what note_cut() notes, but for what is printed
  protocol::Cut noted_;  // the latest
  uint64_t shown_;       // of the log, committed or not
  uint64_t affected_ = 0;
  std::atomic<bool> holding_{false};
  Uncommitted held_;
  std::atomic<uint64_t> printed_, print_lost_;
};

}  // namespace heddle::worker
