package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	// A host that assisted-service rejects, or that cannot reach an API, retries after a pause that doubles up
	// to a limit.
	firstRetry = 10 * time.Millisecond
	lastRetry  = 2 * time.Second
	// powerCycle is the shortest time between the stop of a machine and the start of another system.
	powerCycle = 10 * time.Second
)

// Host is one machine.
type Host struct {
	rack *Rack
	name string
	// key is the key of its BareMetalHost; empty for a host that is not managed.
	key types.NamespacedName
	// leased are the addresses that the network gives to the first NIC of the machine.
	leased []string
	log    logr.Logger

	// switching is locked while the machine is switched on or off.
	switching sync.Mutex
	// nodeFound ends the attempts to report that the Node is lost. The running host uses it, or, while the host
	// is off, the owner of switching.
	nodeFound func()

	mu            sync.Mutex
	hardware      Hardware
	reported      Hardware
	medium        *medium
	installation  *installation
	boots         []Boot
	cutPower      context.CancelCauseFunc
	stopped       chan struct{}
	unplugged     bool
	wrongBoot     bool
	mediumFirst   bool
	registrations int
	losses        []Loss
	stage         models.HostStage
	faults        map[models.HostStage]string
	lingers       map[models.HostStage]chan struct{}
	noImages      string
	// tasks are the tasks of the Bare Metal Operator. turnedOn reports whether the host shall run without a
	// medium.
	tasks    map[Task]progress
	turnedOn bool
	problem  error
}

var errPowerOff = errors.New("the host is switched off")

// Name returns namespace/name of the BareMetalHost, or the name of the hardware of an unmanaged host.
func (h *Host) Name() string { return h.name }

// Hardware returns the machine that boots.
func (h *Host) Hardware() Hardware {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hardware.clone()
}

// inspected returns the hardware that an inspection finds.
func (h *Host) inspected() Hardware {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported.clone()
}

// Boots returns everything that the host booted, oldest first.
func (h *Host) Boots() []Boot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.boots)
}

// Registrations returns how often the host registered with assisted-service.
func (h *Host) Registrations() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registrations
}

// PoweredOn reports whether the host runs.
func (h *Host) PoweredOn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cutPower != nil
}

// Stage returns the installation stage that the host entered last; empty before an installation.
func (h *Host) Stage() models.HostStage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stage
}

// Problem returns the error that blocks the host at the moment; nil if none does. Examples are an API that the
// host cannot reach, and an Ignition config with which its kubelet does not start.
func (h *Host) Problem() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// Ignition returns the decoded Ignition config of the installed node (the override of its Agent); nil before an
// installation started.
func (h *Host) Ignition() *Ignition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.installation == nil {
		return nil
	}
	return h.installation.ignition
}

// hasNode reports whether the host registered a Node of a workload cluster.
func (h *Host) hasNode(cluster types.NamespacedName, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.installation != nil && h.installation.node == name && h.installation.cluster.key == cluster
}

// UserData returns the decoded user data of the disk image that the host was provisioned with. It is nil for a
// live ISO, and for user data that is no Ignition config.
func (h *Host) UserData() *Ignition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.medium == nil {
		return nil
	}
	return h.medium.userData
}

// Instruction returns the instruction of the last installation of the host; false before the first.
func (h *Host) Instruction() (Instruction, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.installation == nil {
		return Instruction{}, false
	}
	return h.installation.instruction, true
}

func (h *Host) replaceHardware(s spare) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for target, hardware := range map[*Hardware]*Hardware{&h.hardware: s.boots, &h.reported: s.reported} {
		if hardware == nil {
			continue
		}
		*target = hardware.clone()
		if len(target.NICs) > 0 && len(target.NICs[0].Addresses) == 0 {
			target.NICs[0].Addresses = h.leased
		}
	}
}

// provision boots the host from a medium. It does nothing if the running host has that medium already.
func (h *Host) provision(m medium) {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.mu.Lock()
	same := h.medium != nil && h.medium.boot == m.boot && h.medium.token == m.token && h.cutPower != nil
	h.mu.Unlock()
	if same {
		return
	}
	h.stop()
	h.leaveCluster()
	h.recordLoss("provisioned again with " + m.boot.Source)
	h.mu.Lock()
	h.medium, h.installation, h.stage = &m, nil, ""
	h.mu.Unlock()
	h.start()
}

// deprovision switches the host off, removes its medium and, with clean, wipes its disk. A disk that is not
// wiped is not booted either.
func (h *Host) deprovision(clean bool) {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.stop()
	h.leaveCluster()
	if clean {
		h.recordLoss("deprovisioned and cleaned")
	} else {
		h.recordLoss("deprovisioned without cleaning")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.medium, h.installation, h.stage, h.turnedOn = nil, nil, "", false
}

// setPower switches the host on or off, and returns whether it runs now.
func (h *Host) setPower(on bool) bool {
	h.switching.Lock()
	defer h.switching.Unlock()
	if on {
		h.start()
	} else {
		h.stop()
	}
	return h.PoweredOn()
}

// start switches the host on; the caller holds switching. A host that runs, has nothing to boot or is unplugged
// stays as it is.
func (h *Host) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cutPower != nil || h.unplugged || h.medium == nil && h.installation == nil || h.rack.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancelCause(h.rack.ctx)
	stopped := make(chan struct{})
	h.cutPower, h.stopped = cancel, stopped
	h.rack.runs.Go(func() {
		defer close(stopped)
		h.run(ctx)
	})
}

// stop switches the host off at once and waits until all its goroutines ended; the caller holds switching.
func (h *Host) stop() {
	h.mu.Lock()
	cut, stopped, inst := h.cutPower, h.stopped, h.installation
	h.cutPower = nil
	h.mu.Unlock()
	if cut == nil {
		return
	}
	cut(errPowerOff)
	<-stopped
	h.setProblem(nil)
	if inst != nil {
		h.stopPods(inst)
		inst.cluster.suspend(h)
		h.reportNodeLost(inst)
	}
}

func (h *Host) leaveCluster() {
	h.mu.Lock()
	inst := h.installation
	h.mu.Unlock()
	if inst != nil {
		inst.cluster.leave(h)
		h.wipePods(inst)
	}
}

// run runs the host from power on to power off. It boots again when an installation ends with a reboot.
func (h *Host) run(ctx context.Context) {
	for ctx.Err() == nil {
		boot := h.boot()
		h.log.Info("booted", "system", boot.System, "source", boot.Source)
		again := false
		switch boot.System {
		case Discovery:
			again = openshift.Pause(ctx, h.rack.options.BootDelay) && h.discover(ctx)
		case Installed:
			h.findNode()
			h.runInstalled(ctx)
			h.heartbeat(ctx)
		case Unknown:
		}
		if !again {
			return
		}
	}
}

// boot selects what the machine boots now, and records it.
func (h *Host) boot() Boot {
	h.mu.Lock()
	defer h.mu.Unlock()
	boot := Boot{System: Unknown, Source: "nothing"}
	if h.medium != nil {
		boot = h.medium.bootOn(h.hardware)
	}
	if h.installation != nil && h.installation.written && !h.wrongBoot && (!h.mediumFirst || h.medium == nil) {
		boot = Boot{System: Installed, Source: "disk " + h.installation.disk.ByID}
	}
	h.wrongBoot = false
	h.boots = append(h.boots, boot)
	return boot
}

// discover runs the discovery agent: it registers and follows instructions. It registers again when it is
// instructed to, or when assisted-service forgot it. It returns true if the host is to reboot, false if it was
// switched off.
func (h *Host) discover(ctx context.Context) (reboot bool) {
	agent, ok := h.loadAgent(ctx)
	retry := backOff{}
	for ok && ctx.Err() == nil {
		if err := h.register(ctx, agent); err != nil {
			h.setProblem(err)
			retry.wait(ctx)
			continue
		}
		h.registered()
		for ctx.Err() == nil {
			instruction, err := h.rack.options.Service.Next(ctx, agent)
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				h.setProblem(err)
				retry.wait(ctx)
				continue
			}
			retry.reset()
			h.setProblem(nil)
			if instruction.Kind == Exit {
				break
			}
			if instruction.Kind == Install && h.installAttended(ctx, agent, instruction) {
				return true
			}
		}
		retry.waitOnRepeat(ctx)
	}
	return false
}

// register registers the host with assisted-service. A host that is switched off meanwhile is off only after the
// answer, or after the time of a boot. Otherwise assisted-service would assume that the host runs its discovery
// agent after its disk.
func (h *Host) register(ctx context.Context, agent Agent) error {
	requested, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(powerCycle, abandon) })()
	return h.rack.options.Service.Register(requested, agent)
}

// loadAgent reads the configuration of the discovery agent from the user data or from the live ISO. The ISO is
// loaded at every boot. It returns false if the host was switched off before the image was loaded.
func (h *Host) loadAgent(ctx context.Context) (Agent, bool) {
	h.mu.Lock()
	m := *h.medium
	h.mu.Unlock()
	retry := backOff{}
	for ctx.Err() == nil {
		agent, err := h.readAgent(ctx, m)
		if err == nil {
			return agent, true
		}
		h.setProblem(err)
		retry.wait(ctx)
	}
	return Agent{}, false
}

// readAgent reads the Ignition config of the discovery system, which configures the network before the agent
// reads it.
func (h *Host) readAgent(ctx context.Context, m medium) (Agent, error) {
	system := m.userData
	if system == nil {
		raw, err := h.rack.options.Service.Image(ctx, m.boot.InfraEnvID, m.token)
		if err != nil {
			return Agent{}, fmt.Errorf("cannot load the live ISO: %w", err)
		}
		if system, err = DecodeIgnition(raw); err != nil {
			return Agent{}, fmt.Errorf("cannot start from the live ISO: %w", err)
		}
	}
	config, err := AgentConfigOf(system)
	if err != nil {
		return Agent{}, err
	}
	h.configureNetwork(system)
	hardware := h.Hardware()
	return Agent{
		AgentConfig: config, HostID: hardware.UUID, Inventory: hardware.Inventory(),
		ImageFailure: func(image string) string { return h.cannotPull(ctx, system, image) },
	}, nil
}

func (h *Host) registered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.registrations++
	h.problem = nil
}

// setProblem records the error that blocks the host; nil clears it.
func (h *Host) setProblem(err error) {
	h.mu.Lock()
	changed := err != nil && (h.problem == nil || h.problem.Error() != err.Error())
	h.problem = err
	h.mu.Unlock()
	if changed && !errors.Is(err, context.Canceled) && !errors.Is(err, errPowerOff) {
		h.log.Info("blocked", "reason", err.Error())
	}
}

// backOff is a pause that doubles each time until it is reset.
type backOff struct{ next time.Duration }

func (b *backOff) reset() { b.next = 0 }

func (b *backOff) wait(ctx context.Context) {
	b.next = min(max(b.next*2, firstRetry), lastRetry)
	openshift.Pause(ctx, b.next)
}

// waitOnRepeat does not pause the first time after a reset.
func (b *backOff) waitOnRepeat(ctx context.Context) {
	if b.next == 0 {
		b.next = firstRetry / 2
		return
	}
	b.wait(ctx)
}
