package assistedsim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// The records below correspond to the database of the real service. The API objects are written from the
// records; only the spec of the objects is read back. Simulator.mu guards all records.

type infraEnv struct {
	key types.NamespacedName
	uid types.UID
	id  string
	// clusterRef is the cluster that every host of a bound InfraEnv belongs to; zero with late binding.
	clusterRef  types.NamespacedName
	agentLabels map[string]string
	autoApprove bool
	// generation counts regenerated images; fingerprint identifies the inputs of the last one.
	generation  int
	fingerprint string
	createdAt   time.Time
	updatedAt   time.Time
	urls        BootArtifacts
	isoURL      string
	// networks are the NMStateConfigs in the image; their files are at networksURL.
	networks    []aiv1beta1.NMStateConfig
	networksURL string
	pullSecret  []byte
	// mirrors are the data of the ConfigMap with the registry mirrors, or nil.
	mirrors map[string]string
	spec    InfraEnvSpec
	token   string
}

// requests are the values from the spec of an Agent that the service accepted before the installation.
type requests struct {
	role              models.HostRole
	hostname          string
	diskID            string
	nodeLabels        map[string]string
	installerArgs     string
	ignitionOverrides string
	// fencing are the credentials of the BMC in the form that the service stores; empty if none.
	fencing string
}

type host struct {
	key      types.NamespacedName
	infraEnv *infraEnv
	// forgotten is set for a host without an Agent. The service ignores the host until it registers again.
	forgotten bool

	state, info string
	// published is the state in the Agent's status. A host gets an instruction only after the Agent shows the
	// state that leads to it.
	published string
	// due is the earliest time at which the state may end automatically.
	due       time.Time
	kind      string
	cluster   types.NamespacedName
	wanted    types.NamespacedName
	approved  bool
	requested requests
	role      models.HostRole
	bootstrap bool
	specError error
	// fencing is the content of the Secret that the Agent refers to.
	fencing fencing
	// backendError shows SpecSynced=False/BackendError for a moment, like the real service after an update
	// conflict.
	backendError bool

	// arrived is a received inventory that is not processed yet; until then the previous one stays visible.
	arrived, inventory *models.Inventory
	validation         validation
	failing            string

	stage                    models.HostStage
	stageInfo                string
	stages                   []models.HostStage
	stageStart, stageUpdated time.Time
	handedOver, stopped      bool
	// cannotPull is the reason why the host cannot pull an image.
	cannotPull func(image string) string
	// reports counts the reports of the host; shown counts those that the Agent has shown.
	reports, shown int

	deprovision *AgentDeprovisionInfo
	cleanup     string
}

type validation string

const (
	validationUnknown validation = ""
	validationPassing validation = "passing"
	validationFailing validation = "failing"
)

type cluster struct {
	key             types.NamespacedName
	id, openshiftID string
	state, info     string
	due             time.Time

	// name, spec, overrides and ignored are the values that the service has accepted: see acceptChanges.
	name             string
	spec             hiveext.AgentClusterInstallSpec
	overrides        string
	ignored          ignoredValidations
	releaseImage     string
	kubeconfigSecret string
	hold             bool
	specError        error
	deleting         bool

	// prepared is true once the installation files were generated.
	prepared    bool
	lastFailure string
	failing     string
	// finalized is true once the controller in the cluster reported that the operators are available;
	// operatorsDone once this is published.
	finalized, operatorsDone bool
}

func (h *host) enter(state, info string, delay time.Duration) {
	h.state, h.info, h.due = state, info, time.Now().Add(delay)
}

func (c *cluster) enter(state, info string, delay time.Duration) {
	c.state, c.info, c.due = state, info, time.Now().Add(delay)
}

func (h *host) bound() bool { return h.cluster != types.NamespacedName{} }

func (h *host) dayTwo() bool { return h.kind == models.HostKindAddToExistingClusterHost }

// hostname returns the name of the host in its cluster.
func (h *host) hostname() string {
	switch {
	case h.requested.hostname != "":
		return h.requested.hostname
	case h.inventory != nil:
		return h.inventory.Hostname
	}
	return ""
}

// installationDisk returns the requested disk, or the first eligible one. The service leaves fast and large
// disks to the workload.
func (h *host) installationDisk() string {
	if h.requested.diskID != "" || h.inventory == nil {
		return h.requested.diskID
	}
	eligible := slices.DeleteFunc(slices.Clone(h.inventory.Disks), func(d *models.Disk) bool { return !d.InstallationEligibility.Eligible })
	if len(eligible) == 0 {
		return ""
	}
	return slices.MinFunc(eligible, compareDisks).ID
}

func compareDisks(a, b *models.Disk) int {
	return cmp.Or(
		cmp.Compare(strings.Count(a.Name, "nvme"), strings.Count(b.Name, "nvme")),
		cmp.Compare(a.DriveType, b.DriveType), // HDD, SSD
		cmp.Compare(a.SizeBytes, b.SizeBytes),
		cmp.Compare(a.Hctl, b.Hctl),
	)
}

func (c *cluster) singleNode() bool {
	return c.spec.ProvisionRequirements.ControlPlaneAgents == 1 && c.spec.ProvisionRequirements.WorkerAgents == 0
}

// acceptsHosts reports whether hosts may register or be bound now.
func (c *cluster) acceptsHosts() bool {
	return !c.deleting && (c.waiting() || c.state == models.ClusterStatusAddingHosts)
}

// waiting reports whether the installation has not started.
func (c *cluster) waiting() bool {
	return slices.Contains([]string{
		models.ClusterStatusInsufficient, models.ClusterStatusReady, models.ClusterStatusPendingForInput,
	}, c.state)
}

// installingNow reports whether hosts of the cluster are being installed: from the first boot into the
// installer until the last host is done.
func (c *cluster) installingNow() bool {
	return slices.Contains([]string{
		models.ClusterStatusInstalling, models.ClusterStatusInstallingPendingUserAction, models.ClusterStatusFinalizing,
	}, c.state)
}

// members returns the hosts of a cluster in a stable order. Without dayTwo, it returns the hosts of the first
// installation.
func (s *Simulator) members(cluster types.NamespacedName, dayTwo bool) []*host {
	var members []*host
	for _, h := range s.hosts {
		if h.cluster == cluster && h.dayTwo() == dayTwo {
			members = append(members, h)
		}
	}
	slices.SortFunc(members, func(a, b *host) int { return compareNames(a.key, b.key) })
	return members
}

func compareNames(a, b types.NamespacedName) int {
	switch x, y := a.String(), b.String(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// notify wakes every caller that waits for a change of the records. Called with mu held.
func (s *Simulator) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// touchHost enqueues the Agent and its cluster. Called with mu held.
func (s *Simulator) touchHost(h *host) {
	enqueue(s.agentQueue, h.key)
	if h.bound() {
		enqueue(s.clusterQueue, h.cluster)
	}
	s.notify()
}

// touchCluster enqueues the cluster and every host that is a member or wants to join. Called with mu held.
func (s *Simulator) touchCluster(key types.NamespacedName) {
	enqueue(s.clusterQueue, key)
	for _, h := range s.hosts {
		if h.cluster == key || h.wanted == key {
			enqueue(s.agentQueue, h.key)
		}
	}
	s.notify()
}

// touchReferrers enqueues the InfraEnvs that are bound to the cluster. Called with mu held.
func (s *Simulator) touchReferrers(cluster types.NamespacedName) {
	for name, ref := range s.references {
		if ref == cluster {
			enqueue(s.infraEnvQueue, name)
		}
	}
}

func enqueue(q queue, key types.NamespacedName) {
	if q != nil {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}
