package hosts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// installation is the state of an installation that a host keeps: until the reboot in memory, afterwards on its
// disk.
type installation struct {
	config      AgentConfig
	instruction Instruction
	cluster     *cluster
	ignition    *Ignition
	disk        Disk
	// twoNodes is true if the cluster has two nodes that fence each other. The bootstrap reads it when it starts
	// the API.
	twoNodes bool

	// The host's lock guards the rest.

	// written is true once the node is on the disk.
	written bool
	// passed is the number of stages after the reboot that the host reported.
	passed int
	// node is the name of the Node that the host registered, pods the name under which its kubelet runs static
	// pods.
	node, pods string
	nodeUID    types.UID
	// requests are the names of its CertificateSigningRequests by signer.
	requests map[string]string
	// expired is true if its certificates have expired and are requested again.
	expired bool
}

var errAborted = errors.New("the installation was aborted")

// installAttended installs while the discovery agent continues to request instructions. The service regards a
// silent host as lost, and may stop the installation. It returns true if the host is to reboot into the
// installed system.
func (h *Host) installAttended(ctx context.Context, agent Agent, instruction Instruction) (reboot bool) {
	installing, end := context.WithCancelCause(ctx)
	var attending sync.WaitGroup
	attending.Go(func() { end(h.attend(installing, agent)) })
	reboot = h.install(installing, agent.AgentConfig, instruction)
	end(nil)
	attending.Wait()
	return reboot
}

// attend requests instructions until the service aborts the installation.
func (h *Host) attend(ctx context.Context, agent Agent) error {
	retry := backOff{}
	for ctx.Err() == nil {
		instruction, err := h.rack.options.Service.Next(ctx, agent)
		if errors.Is(err, ErrNotFound) || err == nil && instruction.Kind != Install {
			return errAborted
		}
		// Until the first report the service repeats its order.
		retry.wait(ctx)
	}
	return nil
}

// install runs the stages of an installation in the discovery system. It returns true if the host is to reboot
// into the installed system, false if the installation ended otherwise: the agent continues.
func (h *Host) install(ctx context.Context, config AgentConfig, instruction Instruction) (reboot bool) {
	inst := &installation{
		config: config, instruction: instruction, cluster: h.rack.clusterOf(instruction), requests: map[string]string{},
	}
	if err := h.prepare(inst); err != nil {
		h.fail(ctx, inst, err.Error())
		return false
	}
	h.recordLoss(installedAgain)
	h.mu.Lock()
	h.installation, h.stage = inst, ""
	h.mu.Unlock()
	inst.cluster.begin(h, member{
		controlPlane: isControlPlane(instruction),
		bootstrap:    (instruction.Bootstrap || instruction.SingleNode) && !instruction.DayTwo,
	})
	for _, stage := range untilReboot(Stages(instruction)) {
		if !h.enter(ctx, inst, stage) || !h.workBeforeReboot(ctx, inst, stage) {
			inst.cluster.leave(h)
			return false
		}
	}
	inst.cluster.suspend(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	inst.written = ctx.Err() == nil
	return inst.written
}

// prepare reads the configuration of the installer.
func (h *Host) prepare(inst *installation) error {
	config := &Ignition{Files: map[string]File{}, Units: map[string]Unit{}}
	if overrides := inst.instruction.IgnitionOverrides; overrides != "" {
		var err error
		if config, err = DecodeIgnition([]byte(overrides)); err != nil {
			return fmt.Errorf("cannot read the ignition overrides: %w", err)
		}
	}
	inst.ignition = config
	disk, ok := h.Hardware().Disk(inst.instruction.InstallationDisk)
	if !ok {
		return fmt.Errorf("the host has no disk %s", inst.instruction.InstallationDisk)
	}
	inst.disk = disk
	return nil
}

// workBeforeReboot does the work of a stage. It returns false if the host was switched off meanwhile.
func (h *Host) workBeforeReboot(ctx context.Context, inst *installation, stage models.HostStage) bool {
	if stage != models.HostStageWaitingForControlPlane {
		return true
	}
	if inst.instruction.Bootstrap && !h.bringUpAPI(ctx, inst) {
		return false
	}
	return inst.cluster.await(ctx, enoughControlPlanesReady(inst.twoNodes)) == nil
}

// runInstalled runs the installed node: it finishes the installation, or starts again after a reboot.
func (h *Host) runInstalled(ctx context.Context) {
	h.mu.Lock()
	inst, passed, node := h.installation, h.installation.passed, h.installation.node
	h.mu.Unlock()
	if !h.linger(ctx, kubeletStart) || !h.runPods(ctx, inst) {
		return
	}
	if node != "" && !(h.renewExpired(ctx, inst) && h.join(ctx, inst) && h.becomeReady(ctx, inst)) {
		return
	}
	stages := afterReboot(Stages(inst.instruction))
	if passed < len(stages) && !h.findAPI(ctx, inst) {
		return
	}
	for _, stage := range stages[passed:] {
		if !h.workAfterReboot(ctx, inst, stage) || !h.enter(ctx, inst, stage) {
			return
		}
		h.mu.Lock()
		inst.passed++
		h.mu.Unlock()
	}
	inst.cluster.update(h, func(m *member) { m.done = true })
	if inst.instruction.DayTwo || !isControlPlane(inst.instruction) {
		return
	}
	if members, _ := inst.cluster.snapshot(); controlPlaneDone(members) {
		h.finalize(ctx, inst)
	}
}

// findAPI waits until an API exists that the node can join. A single node starts its own; a day-2 host finds it.
func (h *Host) findAPI(ctx context.Context, inst *installation) bool {
	switch {
	case inst.instruction.DayTwo:
		return true
	case inst.instruction.SingleNode:
		return h.bringUpAPI(ctx, inst)
	}
	return inst.cluster.await(ctx, apiServed) == nil
}

// workAfterReboot does the work before the report of a stage: Joined reports that the Node exists, Done that it
// is Ready.
func (h *Host) workAfterReboot(ctx context.Context, inst *installation, stage models.HostStage) bool {
	switch stage {
	case models.HostStageJoined:
		if inst.instruction.DayTwo && !(h.recognizeServer(ctx, inst) && h.requestClient(ctx, inst)) {
			return false
		}
		return h.join(ctx, inst)
	case models.HostStageDone:
		if inst.instruction.DayTwo && !h.requestServing(ctx, inst) {
			return false
		}
		return h.becomeReady(ctx, inst) && openshift.Pause(ctx, h.rack.options.StageDelay) && h.takeNodeLabels(ctx, inst)
	}
	return true
}

// enter reports a stage and stays in it for the delay. It returns false if the installation ends here: a test
// lets the host fail, or the host was switched off. It also ends if assisted-service forgot the host while it runs the
// discovery system.
func (h *Host) enter(ctx context.Context, inst *installation, stage models.HostStage) bool {
	if reason, failed := h.takeFault(stage); failed {
		h.fail(ctx, inst, reason)
		return false
	}
	if err := h.report(ctx, inst, stage, ""); err != nil {
		return false
	}
	return openshift.Pause(ctx, h.rack.options.StageDelay) && h.linger(ctx, stage)
}

// fail reports that the installation failed.
func (h *Host) fail(ctx context.Context, inst *installation, reason string) {
	// A host that is unknown or off cannot report.
	_ = h.report(ctx, inst, models.HostStageFailed, reason)
}

// report reports a stage to assisted-service and retries until that succeeds. After its reboot a day-2 host
// reports nothing: assisted-service reads the Node itself.
func (h *Host) report(ctx context.Context, inst *installation, stage models.HostStage, info string) error {
	h.mu.Lock()
	h.stage = stage
	written := inst.written
	h.mu.Unlock()
	h.log.Info("installation stage", "stage", stage, "info", info)
	report := Report{AgentConfig: inst.config, HostID: h.Hardware().UUID, Stage: stage, Info: info}
	if written {
		if inst.instruction.DayTwo {
			return nil
		}
		report.ClusterID = inst.instruction.ClusterID
	}
	err := h.callService(ctx, func() error { return h.rack.options.Service.Progress(ctx, report) })
	if written && errors.Is(err, ErrNotFound) {
		// The installed node does not depend on the service: the reports of its controller may be lost.
		return nil
	}
	return err
}

// callService calls the service until it answers, or has forgotten the host.
func (h *Host) callService(ctx context.Context, call func() error) error {
	retry := backOff{}
	for {
		err := call()
		switch {
		case err == nil:
			h.setProblem(nil)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrNotFound):
			return err
		}
		h.setProblem(err)
		retry.wait(ctx)
	}
}
