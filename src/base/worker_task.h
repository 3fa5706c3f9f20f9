// Whether the calling thread is at a task of a worker pool.
#pragma once

namespace galvani {
bool inside_worker_task();
}  // namespace galvani
