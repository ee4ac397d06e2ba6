#include "client/copy/copy_pieces.h"

#include <algorithm>
#include <deque>

#include "core/stream_copy.h"

namespace heddle::client {

using protocol::CopyEnd;
using protocol::CopyRecord;
using protocol::Place;
using protocol::RecordType;

namespace {

constexpr size_t kPiecesInFlight = 4;  // of a copy to the host: more would only fall out of the cache

// Between host memory and the dense rows of a payload.
void gather(char* payload, const CopyPlace& host, const CopyPiece& piece) {
  for (uint64_t row = 0; row < piece.rows; ++row) {
    const CopyOffset at{piece.at.z, piece.at.y + row, piece.at.x};
    std::memcpy(payload + row * piece.width, host_pointer(host, at), piece.width);
  }
}
void scatter(const char* payload, const CopyPlace& host, const CopyPiece& piece) {
  for (uint64_t row = 0; row < piece.rows; ++row) {
    const CopyOffset at{piece.at.z, piece.at.y + row, piece.at.x};
    stream_copy(host_pointer(host, at), payload + row * piece.width, piece.width);
  }
}

CopyEnd bulk_end(uint64_t position) {
  return CopyEnd{Place::kBulk, 0, 0, 0, position, 0, 0};
}

// Under the device's lock.
Answer<uint64_t> append_piece(const StreamRef& stream, const CopyEnd& to, const CopyEnd& from, const CopyPiece& piece,
                              VirtualDevice::Begin begin) {
  HEDDLE_ANSWER(stream.device->prepare(begin));
  auto record = stream.device->reserve<CopyRecord>(RecordType::kCopy, stream.slot);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->to = to;
  (*record)->from = from;
  (*record)->width = piece.width;
  (*record)->height = piece.rows;
  (*record)->depth = 1;
  return stream.device->publish(stream.slot);
}

struct InFlight {
  CopyPiece piece;
  uint64_t position, sequence;
};

// Asks for a piece. nullopt: no space, and `may_wait` is false.
Answer<std::optional<InFlight>> send_for(const StreamRef& stream, const CopyPlace& from, const CopyPiece& piece,
                                         bool may_wait) {
  VirtualDevice::Lock lock = stream.device->lock();
  auto place = stream.device->ring().reserve_bulk(piece.bytes());
  if (!place && !may_wait) return std::nullopt;
  if (!place) {
    auto position = stream.device->task().reserve_bulk(lock, piece.bytes());
    if (!position) return tl::unexpected(std::move(position).error());
    place = *position;
  }
  auto sequence = append_piece(stream, bulk_end(*place), end_at(from, piece.at), piece, VirtualDevice::Begin::kYes);
  if (sequence) return InFlight{piece, *place, *sequence};
  stream.device->ring().release_bulk(*place, 0);
  return tl::unexpected(std::move(sequence).error());
}

// Waits for the piece and takes it out; its place in the bulk area is given back either way.
Done receive(const StreamRef& stream, const CopyPlace& to, const InFlight& sent) {
  VirtualDevice& device = *stream.device;
  Done done = device.synchronize_stream(stream.slot, sent.sequence);
  if (done) scatter(device.ring().bulk_at(sent.position), to, sent.piece);
  const VirtualDevice::Lock lock = device.lock();
  device.ring().release_bulk(sent.position, sent.sequence);
  return done;
}

}  // namespace

CopyPieces::CopyPieces(const CopyShape& shape, const CopyPlace& to, const CopyPlace& from, uint64_t limit)
    : shape_(shape), limit_(limit) {
  const bool rows_touch = shape.height == 1 || (to.pitch == shape.width && from.pitch == shape.width);
  if (!rows_touch) return;
  const uint64_t slice = shape.width * shape.height;
  if (shape.depth == 1 || (to.slice == slice && from.slice == slice)) {
    shape_ = {slice * shape.depth, 1, 1};
  } else {
    shape_ = {slice, 1, shape.depth};
  }
}

std::optional<CopyPiece> CopyPieces::next() {
  if (at_.z == shape_.depth) return std::nullopt;
  CopyPiece piece{at_, std::min(shape_.width - at_.x, limit_), 1};
  if (piece.width == shape_.width) {
    piece.rows = std::min(shape_.height - at_.y, limit_ / shape_.width);
  }
  at_.x += piece.width;
  if (at_.x == shape_.width) {
    at_.x = 0;
    at_.y += piece.rows;
  }
  if (at_.y == shape_.height) {
    at_.y = 0;
    ++at_.z;
  }
  return piece;
}

char* host_pointer(const CopyPlace& place, const CopyOffset& at) {
  return reinterpret_cast<char*>(place.address + at.z * place.slice + at.y * place.pitch + at.x);
}

void copy_rows_on_host(const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  for (uint64_t z = 0; z < shape.depth; ++z) {
    for (uint64_t y = 0; y < shape.height; ++y)
      std::memmove(host_pointer(to, {z, y, 0}), host_pointer(from, {z, y, 0}), shape.width);
  }
}

CopyEnd end_at(const CopyPlace& place, const CopyOffset& at) {
  const bool variable = place.kind == CopyPlace::kVariable;
  return CopyEnd{variable ? Place::kSymbol : Place::kWindow,
                 place.module,
                 place.variable,
                 0,
                 place.address + at.z * place.slice + at.y * place.pitch + at.x,
                 place.pitch,
                 place.slice};
}

Done copy_in(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  VirtualDevice& device = *stream.device;
  CopyPieces pieces(shape, to, from, device.ring().bulk_block_bytes());
  while (const auto piece = pieces.next()) {
    VirtualDevice::Lock lock = device.lock();
    auto position = device.task().reserve_bulk(lock, piece->bytes());
    if (!position) return tl::unexpected(std::move(position).error());
    lock.unlock();
    gather(device.ring().bulk_at(*position), from, *piece);
    lock.lock();
    auto sequence = append_piece(stream, end_at(to, piece->at), bulk_end(*position), *piece, VirtualDevice::Begin::kNo);
    device.ring().release_bulk(*position, sequence ? *sequence : 0);
    if (!sequence) return tl::unexpected(std::move(sequence).error());
  }
  return {};
}

Done copy_out(const StreamRef& stream, const CopyPlace& to, const CopyPlace& from, const CopyShape& shape) {
  CopyPieces pieces(shape, to, from, stream.device->ring().bulk_block_bytes());
  std::deque<InFlight> in_flight;
  Done result;
  for (auto piece = pieces.next(); piece || !in_flight.empty();) {
    if (piece && in_flight.size() < kPiecesInFlight) {
      auto sent = send_for(stream, from, *piece, in_flight.empty());
      if (!sent) {
        result = tl::unexpected(std::move(sent).error());
        piece.reset();
        continue;
      }
      if (*sent) {
        in_flight.push_back(**sent);
        piece = pieces.next();
        continue;
      }
    }
    const Done received = receive(stream, to, in_flight.front());
    in_flight.pop_front();
    if (received) continue;
    result = received;
    piece.reset();
  }
  return result;
}

}  // namespace heddle::client
