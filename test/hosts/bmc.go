package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Task is a step that the Bare Metal Operator runs on a machine through its BMC.
type Task string

// The tasks. Each takes [Options.StateDelay], and a test can let each fail.
const (
	Registering    Task = "register"
	Inspecting     Task = "inspect"
	Preparing      Task = "prepare"
	Provisioning   Task = "provision"
	Deprovisioning Task = "deprovision"
	// Powering takes no time: the machine is switched on or off.
	Powering Task = "power"

	// readingState reads the state only.
	readingState Task = "look"
)

// taskRetry is the pause after a failed task. The real operator waits a minute, and longer each time.
const taskRetry = 500 * time.Millisecond

// progress is the progress of a machine in a task.
type progress struct {
	begun bool
	// rounds is how often the task was started, until is when it is done, or may be repeated.
	rounds  int
	until   time.Time
	failure string
	// least is the shortest duration of the task.
	least time.Duration
}

// FailTask makes a task of the BMC fail with the reason each time; empty: the task works again.
func (h *Host) FailTask(task Task, reason string) {
	h.mu.Lock()
	h.tasks[task] = progress{rounds: h.tasks[task].rounds, failure: reason, least: h.tasks[task].least}
	h.mu.Unlock()
	h.rack.poke(h.key)
}

// SlowTask sets the shortest duration of a task of the BMC, even of a running one: cleaning a disk may take
// hours. 0: no longer than others.
func (h *Host) SlowTask(task Task, least time.Duration) {
	h.mu.Lock()
	h.tasks[task] = progress{rounds: h.tasks[task].rounds, failure: h.tasks[task].failure, least: least}
	h.mu.Unlock()
	h.rack.poke(h.key)
}

// Orders returns how often the Bare Metal Operator started each task of the BMC.
func (h *Host) Orders() map[Task]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	orders := map[Task]int{}
	for task, w := range h.tasks {
		orders[task] = w.rounds
	}
	return orders
}

// remaining returns the remaining time of a task. The first call starts the task. No task takes no time.
func (h *Host) remaining(task Task) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tasks[task]
	if !w.begun {
		w.begun = true
		w.rounds++
		w.until = time.Now().Add(max(w.least, h.rack.duration(h.name, task, w.rounds)))
		h.tasks[task] = w
	}
	return time.Until(w.until)
}

// failure returns why a task fails now; empty if it does not. A machine that cannot be switched on cannot be provisioned.
func (h *Host) failure(task Task) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tasks[task]
	reason := w.failure
	if task == Provisioning {
		reason = cmp.Or(reason, h.tasks[Powering].failure)
	}
	if reason != "" {
		w.until = time.Now().Add(taskRetry)
		h.tasks[task] = w
	}
	return reason
}

// finish ends a task, so that the next one starts from the beginning.
func (h *Host) finish(task Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.tasks[task]
	w.begun = false
	h.tasks[task] = w
}

// duration returns how long a host takes for a task. The random part follows from the seed, the host and the round,
// independently of other events.
func (r *Rack) duration(host string, task Task, round int) time.Duration {
	if task == "" || task == Powering {
		return 0
	}
	delay, jitter := r.options.StateDelay, r.options.StateJitter
	if jitter <= 0 {
		return delay
	}
	one := fnv.New64a()
	fmt.Fprintf(one, "%s %s %d", host, task, round)
	random := rand.New(rand.NewPCG(r.options.Seed, one.Sum64()))
	return delay + time.Duration(random.Int64N(int64(jitter)))
}

// order and answer are the request and the response of a task: those of the real operator in
// test/tools/baremetal-operator.
type order struct {
	Image    metal3api.Image `json:"image"`
	UserData string          `json:"userData"`
	Clean    bool            `json:"clean"`
	On       bool            `json:"on"`
}

type answer struct {
	ID        string                     `json:"id"`
	PoweredOn bool                       `json:"poweredOn"`
	Details   *metal3api.HardwareDetails `json:"details,omitempty"`
	Busy      bool                       `json:"busy,omitempty"`
	Failure   string                     `json:"failure,omitempty"`
}

// ServeHTTP serves the real Bare Metal Operator in place of Ironic: <namespace>/<name of the
// BareMetalHost>/<task>.
func (r *Rack) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) != 3 {
		http.NotFound(w, request)
		return
	}
	bmh := &metal3api.BareMetalHost{}
	if err := r.reader.Get(request.Context(), types.NamespacedName{Namespace: parts[0], Name: parts[1]}, bmh); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	host, err := r.hostOf(bmh)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var o order
	if err := json.NewDecoder(request.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(host.runTask(Task(parts[2]), o)); err != nil {
		r.log.Error(err, "cannot answer the Bare Metal Operator", "host", host.name)
	}
}

// runTask starts a task, or continues it.
func (h *Host) runTask(task Task, o order) answer {
	if task == readingState {
		return answer{PoweredOn: h.reportsPower()}
	}
	if h.remaining(task) > 0 {
		return answer{Busy: true}
	}
	if reason := h.failure(task); reason != "" {
		return answer{Failure: reason}
	}
	defer h.finish(task)
	switch task {
	case Registering:
		return answer{ID: h.Hardware().UUID}
	case Inspecting:
		return answer{Details: h.inspected().Details()}
	case Provisioning:
		return answer{Failure: h.write(o.Image, []byte(o.UserData))}
	case Deprovisioning:
		h.deprovision(o.Clean)
	case Powering:
		h.turn(o.On)
		if h.reportsPower() != o.On {
			return answer{Failure: "the machine has no power"}
		}
	case Preparing, readingState:
	}
	return answer{}
}

// write boots the machine from an image, or returns why it cannot.
func (h *Host) write(image metal3api.Image, userData []byte) (failure string) {
	if _, _, err := image.GetChecksum(); err != nil {
		return err.Error()
	}
	h.provision(newMedium(image, userData))
	return ""
}

// turn switches the machine on or off. Without a medium it runs the ramdisk of the operator, which no test can
// see.
func (h *Host) turn(on bool) {
	h.setPower(on)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turnedOn = on
}

// reportsPower returns the power state that the BMC reports.
func (h *Host) reportsPower() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.medium == nil && h.installation == nil {
		return h.turnedOn && !h.unplugged
	}
	return h.cutPower != nil
}
