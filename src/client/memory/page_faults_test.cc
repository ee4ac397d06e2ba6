// Accesses without the right to, served by a thread of this process; a program of its own, since there is one handler.

#include "client/memory/page_faults.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace heddle::client {
namespace {

constexpr size_t kPage = 4096, kPages = 64;

// Gives access to a page when it is touched; the last one is nobody's.
struct Pages {
  Pages() {
    memory = static_cast<char*>(
        ::mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    PageFaults::start(
        address(0), kPages * kPage, [this](const PageFault& fault) { return serve(fault); }, [](void*) {},
        [](void*, uint64_t, uint64_t, bool) {}, this);
  }
  uint64_t address(size_t page) const { return reinterpret_cast<uint64_t>(memory) + page * kPage; }
  bool serve(const PageFault& fault) {
    const size_t page = (fault.address - address(0)) / kPage;
    if (page == kPages - 1) return false;
    ++served;
    wrote = fault.writes;
    thread = fault.thread;
    return ::mprotect(memory + page * kPage, kPage, fault.writes ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
  }
  void take_all() {
    PageFaults::stay_first();
    ::mprotect(memory, kPages * kPage, PROT_NONE);
    served = 0;
  }

  char* memory = nullptr;
  std::atomic<int> served{0}, thread{0};
  std::atomic<bool> wrote{false};
};

Pages& pages() {
  static auto* const the_pages = new Pages;
  return *the_pages;
}
volatile char& byte(size_t page) {
  return pages().memory[page * kPage + 5];
}
volatile char& nobodys() {
  return byte(kPages - 1);
}

struct PageFaultsTest : ::testing::Test {
  void SetUp() override {
    (void)pages();
    ::signal(SIGSEGV, SIG_DFL);  // what the test before installed
    pages().take_all();
  }
};

TEST_F(PageFaultsTest, TheInstructionIsTriedAgainWhenItWasServed) {
  byte(3) = 7;
  EXPECT_TRUE(pages().wrote);
  EXPECT_EQ(byte(3), 7);
  EXPECT_EQ(pages().served, 1);
  EXPECT_EQ(pages().thread, ::gettid());
  EXPECT_EQ(byte(4), 0);
#if defined(__x86_64__)
  EXPECT_FALSE(pages().wrote);
  byte(4) = 1;
  EXPECT_TRUE(pages().wrote);
#endif
}

TEST_F(PageFaultsTest, ThreadsFaultAtOnce) {
  std::vector<std::thread> threads;
  for (size_t n = 0; n < 100; ++n) threads.emplace_back([n] { byte(n % (kPages - 1)) = static_cast<char>(n); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(pages().served, static_cast<int>(kPages - 1));
}

sigjmp_buf back;
std::atomic<int> handled{0};
void jump_back(int) {
  ++handled;
  siglongjmp(back, 1);
}

TEST_F(PageFaultsTest, WhatIsNotServedGoesToTheProgramsHandler) {
  struct sigaction action {};
  action.sa_handler = jump_back;
  ::sigaction(SIGSEGV, &action, nullptr);
  PageFaults::stay_first();
  handled = 0;
  for (int round = 1; round <= 3; ++round) {
    byte(round) = 1;
    if (sigsetjmp(back, 1) == 0) nobodys() = 1;
    EXPECT_EQ(handled, round);
  }
  EXPECT_EQ(pages().served, 3);
}

using PageFaultsDeathTest = PageFaultsTest;

TEST_F(PageFaultsDeathTest, TheProcessEndsAsItWouldWithoutAHandler) {
  EXPECT_EXIT(nobodys() = 1, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(::raise(SIGSEGV), ::testing::KilledBySignal(SIGSEGV), "");
}

struct sigaction ours;
void go_on(int signal, siginfo_t* info, void* context) {
  ours.sa_sigaction(signal, info, context);
}

TEST_F(PageFaultsDeathTest, AHandlerMayGoOnToTheOneItFound) {
  struct sigaction action {};
  action.sa_sigaction = go_on;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &ours);
  PageFaults::stay_first();
  byte(1) = 1;
  EXPECT_EXIT(nobodys() = 1, ::testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace heddle::client
