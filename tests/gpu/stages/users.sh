# The survival tests again, with heddled as the system's service and each role a user of its own: the service (root, as
# the systemd unit has it), the workers, two tenants. Makes the users, and takes them away. Needs root.
set -u
[ "$(id -u)" -eq 0 ] || { echo 'needs root, to make users'; exit 1; }
users='heddle-test-worker heddle-test-a heddle-test-b'
for user in $users; do
  getent passwd "$user" > /dev/null || useradd --system --no-create-home --user-group --shell /usr/sbin/nologin "$user" || exit 1
done
SERVICE=1 WORKER_USER=heddle-test-worker TENANT=heddle-test-a NEIGHBOUR=heddle-test-b HEDDLE_STAGE=users \
  bash "$(dirname "$0")/survival.sh"
status=$?
for user in $users; do userdel "$user" 2> /dev/null; done
exit $status
