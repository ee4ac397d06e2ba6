#include "policy/device_spec.h"

namespace heddle::policy {

DeviceSpec spec_of(DeviceId id, const DeviceModel& model) {
  DeviceSpec spec;
  spec.id = id;
  spec.name = model.name;
  spec.model = model.model;
  spec.memory = Bytes{model.memory_bytes};
  spec.context_memory = Bytes{model.context_bytes};
  spec.sms = model.sms;
  spec.sm = sm_of(model);
  return spec;
}

}  // namespace heddle::policy
