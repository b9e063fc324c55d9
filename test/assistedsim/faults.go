package assistedsim

import (
	"maps"
	"net/http"
	"time"

	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

// faults are the faults that a test requests. Host IDs are the names of Agents.
type faults struct {
	images      map[types.NamespacedName]string
	downloads   map[types.NamespacedName]http.HandlerFunc
	preparation map[types.NamespacedName]string
	invalid     map[string]string
	unprepared  map[string]string
	stages      map[string]stageFault
	// lost are installed clusters that the service registers again.
	lost map[types.NamespacedName]bool
	// unapproved are clusters whose kubelet certificates the service does not approve.
	unapproved map[types.NamespacedName]bool
	// unnotified are namespaces of whose hosts the next inventory is not published.
	unnotified map[string]bool
	// stale are the resource versions of Agents that are not published again before they change.
	stale map[types.NamespacedName]string
	// unfenced are namespaces for whose hosts the service accepts no BMC credentials.
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
		unnotified:  map[string]bool{},
		stale:       map[types.NamespacedName]string{},
		unfenced:    map[string]bool{},
	}
}

func (f *faults) hostFailure(hostID string, stage models.HostStage) (string, bool) {
	fault, ok := f.stages[hostID]
	return fault.reason, ok && fault.stage == stage
}

// set stores reason under key, or deletes the key when reason is empty.
func set[K comparable](m map[K]string, key K, reason string) {
	if reason == "" {
		delete(m, key)
		return
	}
	m[key] = reason
}

// wholeNamespace returns the key of a fault for all InfraEnvs of a namespace, for tests that do not know the
// names beforehand.
func wholeNamespace(infraEnv types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: infraEnv.Namespace}
}

// Flap changes [Options.Flapping]. Zero stops the changes of clusters without hosts.
func (s *Simulator) Flap(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Flapping = period
}

// FailImage fails the image of the InfraEnv with msg; an empty msg ends the fault. Without a name, all
// InfraEnvs of the namespace fail that are reconciled from now on.
func (s *Simulator) FailImage(infraEnv types.NamespacedName, msg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.images, infraEnv, msg)
	enqueue(s.infraEnvQueue, infraEnv)
}

// FailDownload answers requests for the discovery ignition of the InfraEnv with handler; nil ends the fault.
// Without a name, the fault applies to all InfraEnvs of the namespace. See [Hang], [Oversize] and
// [http.NotFound].
func (s *Simulator) FailDownload(infraEnv types.NamespacedName, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handler == nil {
		delete(s.faults.downloads, infraEnv)
		return
	}
	s.faults.downloads[infraEnv] = handler
}

// Hang does not respond until the client closes the connection.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Oversize responds with size bytes of white space, which is not an Ignition.
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

// FailPreparation fails each preparation of the cluster (named by its ClusterDeployment) with reason, until
// reason is empty.
func (s *Simulator) FailPreparation(cluster types.NamespacedName, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.preparation, cluster, reason)
	s.touchCluster(cluster)
}

// FailHostPreparation fails each preparation of the host, for example because of an image pull, until reason is
// empty.
func (s *Simulator) FailHostPreparation(hostID, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.faults.unprepared, hostID, reason)
	s.touchHosts(hostID)
}

// FailValidation keeps the host in state insufficient with reason until it installs; an empty reason ends the
// fault.
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

// FailHost fails the host when it enters stage. With an empty stage, a host that is being installed fails now.
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

// LoseNotification drops the notification of the next host of a namespace that reports its hardware. The service does so
// if its database does not answer at that moment. The Agent is not published before a client changes it.
func (s *Simulator) LoseNotification(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.unnotified[namespace] = true
}

// notified reports whether the state of a host is published.
func (s *Simulator) notified(agent *Agent, h *host) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.unnotified[h.key.Namespace] && h.inventory != nil && len(agent.Status.Inventory.Interfaces) == 0 {
		delete(s.faults.unnotified, h.key.Namespace)
		s.faults.stale[h.key] = agent.ResourceVersion
	}
	version, stale := s.faults.stale[h.key]
	if stale && version != agent.ResourceVersion {
		delete(s.faults.stale, h.key)
		return true
	}
	return !stale
}

// Disconnect gives the host the state after three minutes without a request. The host recovers when it
// registers again, or fails if it is being installed. An installed host does not need a connection.
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

// LoseCluster deletes the records of the cluster (named by its ClusterDeployment) and of its hosts, as if the
// database was restored empty. The service registers the cluster again as not installed. Older versions do so,
// and all versions do so for an AgentClusterInstall that was restored without its status.
func (s *Simulator) LoseCluster(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.lost[cluster] = true
	delete(s.clusters, cluster)
	maps.DeleteFunc(s.hosts, func(_ types.NamespacedName, h *host) bool { return h.cluster == cluster })
	s.touchCluster(cluster)
}

// LeaveCertificates stops the approval of certificates of the cluster (named by its ClusterDeployment), so that
// another client has to approve them.
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
