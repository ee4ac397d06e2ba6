// nn: neural networks at work, one of four jobs: classifying images, training to classify them, detecting objects in a
// stream of frames, and writing texts letter by letter. Weights come from the seed.
// Convolutions are matrix products: Chellapilla, Puri, Simard: High performance convolutional neural networks for
// document processing, 2006.
#include "nn_text.h"

using namespace workload;

constexpr int kColours = 3;
constexpr int kBoxesACell = 3;

// --- Images ------------------------------------------------------------------------------------------------------

// The layers of 3x3 that halve the side and double the channels, then one that gives the answer: dense over all that is
// left, or for boxes the same at each pixel.
Shapes shapes_of(const NnOptions& o) {
  Shapes shapes;
  int in = kColours, side = static_cast<int>(o.side), channels = static_cast<int>(o.channels);
  for (long long l = 0; l < o.layers; ++l) {
    shapes.push_back({in, side, channels, 3, 2, 1});
    in = channels;
    side = shapes.back().out_side();
    channels *= 2;
  }
  const int classes = static_cast<int>(o.classes);
  if (o.mode == "detect") {
    shapes.push_back({in, side, kBoxesACell * (kBoxFields + classes), 1, 1, 0});
  } else {
    shapes.push_back({in, side, classes, side, 1, 0});
  }
  return shapes;
}

// Each class has a picture; an image is its class' picture under noise.
class Pictures {
 public:
  Pictures(const NnOptions& o)
      : random_(Random(o.seed).fork(1)), classes_(o.classes), size_(kColours * o.side * o.side) {}

  int label(uint64_t image) const { return static_cast<int>(random_.fork(0).below(classes_, image)); }

  std::vector<float> image(uint64_t image) const {
    const Random picture = random_.fork(1 + label(image)), noise = random_.fork((1 << 20) + image);
    std::vector<float> pixels(size_);
    for (size_t i = 0; i < size_; ++i) pixels[i] = picture.symmetric(i) + 0.5f * noise.symmetric(i);
    return pixels;
  }

 private:
  const Random random_;
  const uint64_t classes_;
  const size_t size_;
};

// What predict, train and detect have in common: a network, and batches of images that are copied in.
class ImageJob {
 public:
  ImageJob(const NnOptions& options, DeviceMemory& memory)
      : o_(options),
        shapes_(shapes_of(o_)),
        weights_(Random(o_.seed).fork(2)),
        launcher_{o_.blocks},
        pictures_(o_),
        network_(shapes_, static_cast<int>(o_.batch), o_.mode == "train", weights_, launcher_, memory),
        columns_(network_.columns(shapes_.back())) {
    if (o_.mode == "train") {
      labels_ = memory.take<int>(o_.batch);
      losses_ = memory.take(o_.batch);
    }
  }

  int run() {
    ReferenceNetwork reference(o_.check == Check::kNone ? Shapes{} : shapes_, weights_);
    Verdict verdict(1e-3, o_.mode == "train" ? 0.1 : 1.0);
    for (long long k = 0; k < o_.iterations; ++k) {
      pause(o_);
      const Batch& batch = batch_of(k);
      DeviceMemory::upload(network_.input(), batch.input);
      const bool last = k + 1 == o_.iterations,
                 checks = o_.check == Check::kFull || (o_.check == Check::kSample && last);
      if (o_.mode == "train") {
        if (o_.check == Check::kSample && last) reference.adopt(network_);
        train(batch);
        if (checks) train(reference, batch);
      } else {
        answer();
        if (checks) compare_answers(reference, batch, verdict);
      }
    }
    if (o_.mode == "train" && o_.check != Check::kNone) {
      reference.compare(network_, verdict);
      check_loss(verdict);
    }
    return verdict.report(o_.check, what());
  }

 private:
  static constexpr float kRate = 0.02f;
  static constexpr size_t kBatches = 4;  // of images, which come again and again: an epoch of train

  struct Batch {
    std::vector<float> input;  // as the device has it: a column is a pixel of an image
    std::vector<int> labels;
  };

  // They are drawn when they are first needed, so that the device does not wait for them again and again.
  const Batch& batch_of(size_t k) {
    if (batches_.size() < kBatches && k == batches_.size()) batches_.push_back(draw_batch(k));
    return batches_[k % kBatches];
  }

  Batch draw_batch(size_t k) const {
    const size_t batch = o_.batch, pixels = shapes_[0].in_pixels();
    Batch drawn{std::vector<float>(kColours * batch * pixels), {}};
    for (size_t n = 0; n < batch; ++n) {
      const std::vector<float> image = pictures_.image(k * batch + n);
      drawn.labels.push_back(pictures_.label(k * batch + n));
      for (size_t c = 0; c < kColours; ++c) {
        std::copy_n(&image[c * pixels], pixels, &drawn.input[(c * batch + n) * pixels]);
      }
    }
    return drawn;
  }

  std::vector<float> image_of(const Batch& batch, size_t n) const {
    const size_t pixels = shapes_[0].in_pixels();
    std::vector<float> image(kColours * pixels);
    for (size_t c = 0; c < kColours; ++c) {
      std::copy_n(&batch.input[(c * o_.batch + n) * pixels], pixels, &image[c * pixels]);
    }
    return image;
  }

  void answer() {
    const Convolution& c = shapes_.back();
    network_.forward();
    if (o_.mode == "detect") {
      const size_t rows_a_box = kBoxFields + o_.classes;
      activate_boxes<<<launcher_.items(c.out_channels * columns_), kNnThreads>>>(network_.last().out, rows_a_box,
                                                                                 c.out_channels, columns_);
      check_launch("activate_boxes");
    } else {
      launcher_.softmax(network_.last().out, c.out_channels, columns_);
    }
    answers_ = DeviceMemory::download(network_.last().out, c.out_channels * columns_);
    if (o_.mode == "detect") boxes_ += count_boxes();
  }

  void train(ReferenceNetwork& reference, const Batch& batch) const {
    std::vector<std::vector<float>> images;
    for (size_t n = 0; n < batch.labels.size(); ++n) images.push_back(image_of(batch, n));
    reference.train(images, batch.labels, kRate);
  }

  void train(const Batch& drawn) {
    const size_t classes = o_.classes, batch = o_.batch;
    DeviceMemory::upload(labels_, drawn.labels);
    network_.forward();
    launcher_.softmax(network_.last().out, classes, batch);
    measure_loss<<<launcher_.items(classes * batch), kNnThreads>>>(
        network_.last().out, labels_, network_.last().out_gradient, losses_, classes, batch);
    check_launch("measure_loss");
    network_.backward(kRate);
    double loss = 0;
    for (const float image : DeviceMemory::download(losses_, batch)) loss += image / static_cast<double>(batch);
    step_losses_.push_back(loss);
  }

  // The boxes that a frame's reader would get: likely ones, of which none is where a likelier one has its middle.
  size_t count_boxes() const {
    struct Box {
      float score;
      size_t column;
    };
    std::vector<Box> likely;
    const size_t rows_a_box = kBoxFields + o_.classes;
    for (size_t box = 0; box < kBoxesACell; ++box) {
      for (size_t n = 0; n < columns_; ++n) {
        const float score = answers_[(box * rows_a_box + 4) * columns_ + n];
        if (score > 0.6f) likely.push_back({score, n});
      }
    }
    std::sort(likely.begin(), likely.end(), [](const Box& a, const Box& b) { return a.score > b.score; });
    std::vector<bool> taken(columns_);
    size_t count = 0;
    for (const Box& box : likely) {
      if (!taken[box.column]) ++count;
      taken[box.column] = true;
    }
    return count;
  }

  // All images of the batch, or the first one.
  void compare_answers(const ReferenceNetwork& reference, const Batch& batch, Verdict& verdict) const {
    const size_t images = o_.check == Check::kFull ? o_.batch : 1, pixels = shapes_.back().out_pixels();
    for (size_t image = 0; image < images; ++image) {
      Values expected = reference.forward(image_of(batch, image));
      if (o_.mode == "predict") expected = softmax_of(std::move(expected));
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t row = i / pixels, at = row * columns_ + image * pixels + i % pixels;
        if (o_.mode == "detect") {
          expected[i] = box_field(row % (kBoxFields + o_.classes), static_cast<float>(expected[i]));
        }
        verdict.compare(at, answers_[at], expected[i]);
      }
    }
  }

  // Training has to help: the loss of the last epoch against that of the first, if there are two.
  void check_loss(Verdict& verdict) const {
    if (step_losses_.size() < 2 * kBatches) return;
    double first = 0, last = 0;
    for (size_t k = 0; k < kBatches; ++k) {
      first += step_losses_[k] / kBatches;
      last += step_losses_[step_losses_.size() - 1 - k] / kBatches;
    }
    if (!(last < first)) std::fprintf(stderr, "nn: the loss went from %g to %g in training\n", first, last);
    verdict.require(step_losses_.size(), last < first);
  }

  std::string what() const {
    std::string text = o_.mode + ", " + std::to_string(o_.batch) + " of " + std::to_string(o_.side) + "x" +
                       std::to_string(o_.side) + ", " + std::to_string(o_.iterations) + " iterations";
    if (o_.mode == "detect") text += ", " + std::to_string(boxes_) + " boxes";
    if (o_.mode != "train") return text;
    char losses[64];
    std::snprintf(losses, sizeof(losses), ", loss %.3f to %.3f", step_losses_.front(), step_losses_.back());
    return text + losses;
  }

  const NnOptions o_;
  const Shapes shapes_;
  const Random weights_;
  const Launcher launcher_;
  const Pictures pictures_;
  const Network network_;
  const size_t columns_;  // of the last layer
  int* labels_ = nullptr;
  float* losses_ = nullptr;
  std::vector<Batch> batches_;
  std::vector<float> answers_;
  std::vector<double> step_losses_;
  size_t boxes_ = 0;
};

template <class Job>
size_t footprint_of(const NnOptions& o) {
  DeviceMemory memory(true);
  Job(o, memory);
  return memory.bytes();
}

template <class Job>
int run(const NnOptions& o) {
  DeviceMemory memory(false);
  const int status = Job(o, memory).run();
  memory.release();
  return status;
}

int main(int argc, char** argv) {
  NnOptions job;
  job.iterations = 8;
  Options options("nn",
                  "neural networks of convolutions (predict, train, detect) and a recurrent one (generate).\n"
                  "Device memory: weights, activations and unfolded inputs of all layers.",
                  &job,
                  "what is compared with the CPU's result; sample: the last batch's first image, the last step of "
                  "train, the first text");
  options.choice("--mode", &job.mode, {"predict", "train", "detect", "generate"}, "the job");
  options.number("--side", &job.side, 1, 4096, "height and width of the images");
  options.number("--channels", &job.channels, 1, 1024, "of the first layer; each further one has twice as many");
  options.number("--layers", &job.layers, 1, 10, "of convolutions that halve the side, or of the recurrent network");
  options.number("--classes", &job.classes, 1, 1 << 16, "classes, or letters of the alphabet");
  options.number("--batch", &job.batch, 1, 1 << 16, "images or texts at once");
  options.number("--hidden", &job.hidden, 1, 1 << 15, "width of a recurrent layer (generate)");
  options.gap("milliseconds on the host before each iteration");
  options.iterations(1 << 20, "batches, steps of train, frames, or letters of each text");
  options.blocks();
  options.parse(argc, argv);
  const bool text = job.mode == "generate";
  const size_t bytes = !job.footprint ? 0 : text ? footprint_of<TextNetwork>(job) : footprint_of<ImageJob>(job);
  return run_or_print(job, bytes, [&] { return text ? run<TextNetwork>(job) : run<ImageJob>(job); });
}
