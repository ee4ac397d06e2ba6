# What a grant of memory costs at the keeper: made anew, and from what came back.
. "$(dirname "$0")/common.sh"
timeout 120 "$bin/keeper_grants"
