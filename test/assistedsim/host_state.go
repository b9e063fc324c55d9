package assistedsim

import (
	"slices"
	"time"

	"github.com/openshift/assisted-service/models"
)

const (
	infoHostKnown          = "Host is ready to be installed"
	infoHostKnownUnbound   = "Host is ready to be bound to a cluster"
	infoHostBinding        = "Host is waiting to be bound to the cluster"
	infoHostUnbinding      = "Host is waiting to be unbound from the cluster"
	infoHostInsufficient   = "Host cannot be installed due to following failing validation(s): "
	infoHostPreparing      = "Host finished successfully to prepare for installation"
	infoHostPrepareFailure = "Host failed to prepare for installation due to following failing validation(s): "
	infoHostInstalling     = "Installation is in progress"
	infoHostClusterFailed  = "Host is part of a cluster that failed to install"
	infoHostCanceled       = "Installation was " + models.HostStatusCancelled + " by user"

	failingNTP             = "Host couldn't synchronize with any NTP server"
	failingMachineNetworks = "Host does not belong to machine network CIDRs. Verify that the host belongs to every " +
		"CIDR listed under machine networks"
	failingAnyMachineNetwork = "Host does not belong to any machine network CIDR. Verify that the host belongs to at " +
		"least one CIDR listed under machine networks"
)

// stagesOf returns the ordered stages of an installation.
func stagesOf(role models.HostRole, bootstrap, singleNode bool) []models.HostStage {
	start := []models.HostStage{models.HostStageStartingInstallation, models.HostStageInstalling}
	switch {
	case singleNode:
		return append(start, models.HostStageWaitingForBootkube, models.HostStageWritingImageToDisk,
			models.HostStageCopyingRegistryDataToDisk, models.HostStageRebooting, models.HostStageJoined, models.HostStageDone)
	case bootstrap:
		return append(start, models.HostStageWritingImageToDisk, models.HostStageCopyingRegistryDataToDisk,
			models.HostStageWaitingForControlPlane, models.HostStageWaitingForBootkube, models.HostStageWaitingForController,
			models.HostStageRebooting, models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone)
	case role == models.HostRoleMaster, role == models.HostRoleArbiter:
		return append(start, models.HostStageWritingImageToDisk, models.HostStageCopyingRegistryDataToDisk,
			models.HostStageRebooting, models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone)
	}
	return append(start, models.HostStageWritingImageToDisk, models.HostStageWaitingForControlPlane,
		models.HostStageRebooting, models.HostStageWaitingForIgnition, models.HostStageConfiguring,
		models.HostStageJoined, models.HostStageDone)
}

// percentage returns the percentage of the host's completed stages.
func (h *host) percentage() int64 {
	i := slices.Index(h.stages, h.stage)
	if i < 0 {
		return 0
	}
	return int64((i + 1) * 100 / len(h.stages))
}

// stepHost advances the host by one visible step if its state may end automatically and has lasted long enough.
// Called with mu held, after the current state was published, so that no state is skipped.
func (s *Simulator) stepHost(h *host) (stepped bool, wait time.Duration) {
	if h.arrived != nil { // processed as soon as the registration is visible
		h.inventory, h.arrived = h.arrived, nil
		h.backendError = h.validation == validationUnknown
		return true, 0
	}
	if h.backendError {
		h.backendError = false
		return true, 0
	}
	state, info, ok := s.nextHostState(h)
	if !ok {
		return false, 0
	}
	if wait := time.Until(h.due); wait > 0 {
		return false, wait
	}
	switch state {
	case models.HostStatusKnown, models.HostStatusKnownUnbound:
		h.validation, h.failing = validationPassing, ""
	case models.HostStatusInsufficient, models.HostStatusInsufficientUnbound:
		h.validation = validationFailing
	}
	h.enter(state, info, s.opts.StageDelay)
	s.touchHost(h)
	return true, 0
}

// nextHostState returns the next state that the host reaches without external input.
func (s *Simulator) nextHostState(h *host) (state, info string, ok bool) {
	switch h.state {
	case models.HostStatusDiscoveringUnbound, models.HostStatusInsufficientUnbound:
		return s.nextUnbound(h)
	case models.HostStatusDiscovering, models.HostStatusInsufficient:
		return s.nextBound(h)
	}
	c := s.clusters[h.cluster]
	if c == nil {
		return "", "", false
	}
	if h.dayTwo() {
		if h.state == models.HostStatusKnown && h.approved && h.specError == nil && s.startsBlocked[h.cluster] == 0 {
			return models.HostStatusInstalling, infoHostInstalling, true
		}
		return "", "", false
	}
	if c.state == models.ClusterStatusError && installing(h.state) {
		return models.HostStatusError, infoHostClusterFailed, true
	}
	return s.nextPrepared(h, c)
}

func (s *Simulator) nextUnbound(h *host) (state, info string, ok bool) {
	if reason, failing := s.faults.invalid[h.key.Name]; failing {
		return s.insufficient(h, models.HostStatusInsufficientUnbound, reason)
	}
	return models.HostStatusKnownUnbound, infoHostKnownUnbound, h.inventory != nil
}

// nextBound always passes through insufficient: a newly bound host has reported neither its NTP sources nor its
// connectivity.
func (s *Simulator) nextBound(h *host) (state, info string, ok bool) {
	if reason := s.invalid(h); reason != "" {
		return s.insufficient(h, models.HostStatusInsufficient, reason)
	}
	if h.state == models.HostStatusDiscovering {
		reason := failingNTP
		if h.dayTwo() {
			reason = "" // as recorded: the message of the service is empty
		}
		return s.insufficient(h, models.HostStatusInsufficient, reason)
	}
	if s.hostnameTaken(h) {
		return s.insufficient(h, models.HostStatusInsufficient, "Hostname "+h.hostname()+" is not unique in cluster")
	}
	if c := s.clusters[h.cluster]; c != nil && !h.dayTwo() && !s.ignores(h, models.HostValidationIDBelongsToMachineCidr) {
		if failing := outsideMachineNetworks(c, h); failing != "" {
			return s.insufficient(h, models.HostStatusInsufficient, failing)
		}
	}
	return models.HostStatusKnown, infoHostKnown, true
}

// hostnameTaken reports whether another host of the cluster has the same name. Installed hosts count until
// their Agents are deleted.
func (s *Simulator) hostnameTaken(h *host) bool {
	for _, other := range s.hosts {
		if other != h && other.cluster == h.cluster && other.hostname() == h.hostname() && h.hostname() != "" {
			return true
		}
	}
	return false
}

func (s *Simulator) insufficient(h *host, state, reason string) (string, string, bool) {
	info := infoHostInsufficient + reason
	if h.state == state && h.info == info {
		return "", "", false
	}
	h.failing = reason
	return state, info, true
}

// nextPrepared returns the state of the host that matches the state of its cluster, from known to installing.
func (s *Simulator) nextPrepared(h *host, c *cluster) (state, info string, ok bool) {
	preparing, installs := c.state == models.ClusterStatusPreparingForInstallation, c.installingNow()
	switch h.state {
	case models.HostStatusKnown:
		if reason := s.invalid(h); reason != "" && c.waiting() {
			return s.insufficient(h, models.HostStatusInsufficient, reason)
		}
		return models.HostStatusPreparingForInstallation, infoHostPreparing, preparing
	case models.HostStatusPreparingForInstallation:
		if reason := s.unprepared(h); reason != "" && preparing {
			return models.HostStatusPreparingFailed, infoHostPrepareFailure + reason, true
		}
		if preparing {
			return models.HostStatusPreparingSuccessful, infoHostPreparing, true
		}
		return models.HostStatusKnown, infoHostKnown, c.waiting()
	case models.HostStatusPreparingSuccessful:
		if installs {
			return models.HostStatusInstalling, infoHostInstalling, true
		}
		return models.HostStatusKnown, infoHostKnown, c.waiting()
	case models.HostStatusPreparingFailed:
		return models.HostStatusKnown, infoHostKnown, c.state == models.ClusterStatusInsufficient
	}
	return "", "", false
}

// unprepared returns the reason why a host fails to prepare, or "". The service's message about images that the
// host cannot pull lists these images.
func (s *Simulator) unprepared(h *host) string {
	if reason := s.faults.unprepared[h.key.Name]; reason != "" {
		return reason
	}
	c := s.clusters[h.cluster]
	if c == nil || h.cannotPull == nil || h.cannotPull(c.releaseImage) == "" {
		return ""
	}
	return "Failed to fetch container images needed for installation from quay.io. This may be due to a network hiccup. " +
		"Retry to install again. If this problem persists, check your network settings to make sure you\u2019re not blocked."
}

// installing reports whether a host of the first installation has started and not ended.
func installing(state string) bool {
	return slices.Contains([]string{
		models.HostStatusPreparingForInstallation, models.HostStatusPreparingSuccessful, models.HostStatusInstalling,
		models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction,
	}, state)
}

// listens reports whether the spec of the Agent still takes effect. The service silently ignores later changes.
func (h *host) listens() bool {
	return h.unbound() || slices.Contains([]string{
		models.HostStatusDiscovering, models.HostStatusKnown, models.HostStatusDisconnected, models.HostStatusInsufficient,
		models.HostStatusPendingForInput, models.HostStatusBinding,
	}, h.state)
}

func (h *host) unbound() bool {
	return slices.Contains([]string{
		models.HostStatusDiscoveringUnbound, models.HostStatusKnownUnbound,
		models.HostStatusInsufficientUnbound, models.HostStatusDisconnectedUnbound,
	}, h.state)
}
