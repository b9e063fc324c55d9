package assistedsim

import (
	"maps"
	"net/http"
	"time"

	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

// faults is what the test wants to go wrong. Host ids are the names of Agents.
type faults struct {
	images      map[types.NamespacedName]string
	downloads   map[types.NamespacedName]http.HandlerFunc
	preparation map[types.NamespacedName]string
	invalid     map[string]string
	unprepared  map[string]string
	stages      map[string]stageFault
	// lost are clusters that are registered again although they are installed.
	lost map[types.NamespacedName]bool
	// unapproved are clusters whose kubelets get no certificates from the service.
	unapproved map[types.NamespacedName]bool
	// unfenced are namespaces of whose hosts the service takes no credentials of BMCs.
	unfenced map[string]bool
}

type stageFault struct {
	stage  models.HostStage
	reason string
}

func newFaults() faults {
	return faults{
		images:      map[types.NamespacedName]string{},
		downloads:   map[types.NamespacedName]http.HandlerFunc{},
		preparation: map[types.NamespacedName]string{},
		invalid:     map[string]string{},
		unprepared:  map[string]string{},
		stages:      map[string]stageFault{},
		lost:        map[types.NamespacedName]bool{},
		unapproved:  map[types.NamespacedName]bool{},
		unfenced:    map[string]bool{},
	}
}

func (f *faults) hostFailure(hostID string, stage models.HostStage) (string, bool) {
	fault, ok := f.stages[hostID]
	return fault.reason, ok && fault.stage == stage
}

// set puts reason under key, or takes the fault away when reason is empty.
func set[K comparable](m map[K]string, key K, reason string) {
	if reason == "" {
		delete(m, key)
		return
	}
	m[key] = reason
}

// wholeNamespace is the key of a fault of all InfraEnvs in the namespace, for those whose names are not known beforehand.
func wholeNamespace(infraEnv types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: infraEnv.Namespace}
}

// Flap changes [Options.Flapping]: zero lets clusters without hosts rest.
func (s *Simulator) Flap(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Flapping = period
}

// FailImage lets the image of the InfraEnv fail with msg; empty: creation works again. Without a name it is about every
// InfraEnv of the namespace that is looked at from now on.
func (s *Simulator) FailImage(infraEnv types.NamespacedName, msg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.images, infraEnv, msg)
	enqueue(s.infraEnvQueue, infraEnv)
}

// FailDownload answers requests for the discovery ignition of the InfraEnv with handler instead; nil: they work again. Without a
// name it is about every InfraEnv of the namespace.
// See [Hang], [Oversize] and [http.NotFound].
func (s *Simulator) FailDownload(infraEnv types.NamespacedName, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handler == nil {
		delete(s.faults.downloads, infraEnv)
		return
	}
	s.faults.downloads[infraEnv] = handler
}

// Hang answers nothing until the client gives up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Oversize answers with size bytes of white space, which no Ignition is.
func Oversize(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		blank := make([]byte, 64<<10)
		for i := range blank {
			blank[i] = ' '
		}
		for size > 0 {
			n, err := w.Write(blank[:min(size, len(blank))])
			if err != nil {
				return
			}
			size -= n
		}
	}
}

// FailPreparation lets the preparation of the cluster (by its ClusterDeployment) fail with reason, over and over as the
// service tries again; empty: the next attempt works.
func (s *Simulator) FailPreparation(cluster types.NamespacedName, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.preparation, cluster, reason)
	s.touchCluster(cluster)
}

// FailHostPreparation lets the host fail to prepare, as when it cannot pull an image; empty: the next attempt works.
func (s *Simulator) FailHostPreparation(hostID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.unprepared, hostID, reason)
	s.touchHosts(hostID)
}

// FailValidation keeps the host insufficient with reason until it installs; empty: it passes again.
func (s *Simulator) FailValidation(hostID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.invalid, hostID, reason)
	for key, h := range s.hosts {
		if key.Name == hostID && h.state == models.HostStatusKnownUnbound && reason != "" {
			s.discover(h)
		}
	}
	s.touchHosts(hostID)
}

// FailHost lets the host fail when it enters stage. With an empty stage it fails now, if it is being installed.
func (s *Simulator) FailHost(hostID string, stage models.HostStage, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stage != "" {
		s.faults.stages[hostID] = stageFault{stage: stage, reason: reason}
		return
	}
	for key, h := range s.hosts {
		if key.Name == hostID && installing(h.state) {
			s.progress(h, models.HostStageFailed, reason)
		}
	}
	s.touchHosts(hostID)
}

// Disconnect makes the host look as if it had not called for more than three minutes. It recovers when it registers
// again; one that is being installed fails. Once it is installed it need not call any more.
func (s *Simulator) Disconnect(hostID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, h := range s.hosts {
		switch {
		case key.Name != hostID:
		case h.state == models.HostStatusPreparingForInstallation, h.state == models.HostStatusPreparingSuccessful:
			h.enter(models.HostStatusDisconnected, "Host failed to install due to timeout while connecting to host during the preparation phase.", 0)
		case h.state == models.HostStatusInstalling, h.state == models.HostStatusInstallingInProgress:
			h.enter(models.HostStatusError, "Host failed to install due to timeout while connecting to host during the installation phase.", 0)
		case !h.listens():
		case h.bound():
			h.enter(models.HostStatusDisconnected, "Host has stopped communicating with the installation service", 0)
		default:
			h.enter(models.HostStatusDisconnectedUnbound, "Host has stopped communicating with the installation service", 0)
		}
	}
	s.touchHosts(hostID)
}

// LoseCluster lets the service lose all that it knows of the cluster (by its ClusterDeployment) and of its hosts, as
// when its database comes back empty, and register it again like one that was never installed: as older versions do,
// and any version with an AgentClusterInstall that was restored without its status.
func (s *Simulator) LoseCluster(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.lost[cluster] = true
	delete(s.clusters, cluster)
	maps.DeleteFunc(s.hosts, func(_ types.NamespacedName, h *host) bool { return h.cluster == cluster })
	s.touchCluster(cluster)
}

// LeaveCertificates lets the service approve no certificates of the cluster (by its ClusterDeployment) any more, as
// where it takes somebody else to do it.
func (s *Simulator) LeaveCertificates(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.unapproved[cluster] = true
}

func (s *Simulator) touchHosts(hostID string) {
	for key, h := range s.hosts {
		if key.Name == hostID {
			s.touchHost(h)
		}
	}
}
