package assistedsim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The records below are what the real service keeps in its database. The API objects are written from them; only their
// spec is read back. Simulator.mu guards all of them.

type infraEnv struct {
	key types.NamespacedName
	uid types.UID
	id  string
	// clusterRef is the cluster that every host of a bound InfraEnv belongs to; zero with late binding.
	clusterRef  types.NamespacedName
	agentLabels map[string]string
	autoApprove bool
	// generation counts regenerated images; fingerprint is what the last one was made from.
	generation  int
	fingerprint string
	createdAt   time.Time
	updatedAt   time.Time
	urls        aiv1beta1.BootArtifacts
	isoURL      string
	// networks are the NMStateConfigs that the image holds, which then lie under networksURL.
	networks    []aiv1beta1.NMStateConfig
	networksURL string
	pullSecret  []byte
	// mirrors is the ConfigMap of the registry mirrors; nil without.
	mirrors map[string]string
	spec    aiv1beta1.InfraEnvSpec
	token   string
}

// requests is what the spec of an Agent asked for while the service still listened.
type requests struct {
	role              models.HostRole
	hostname          string
	diskID            string
	nodeLabels        map[string]string
	installerArgs     string
	ignitionOverrides string
	// fencing are the credentials of the BMC, as the service keeps them; empty: none.
	fencing string
}

type host struct {
	key      types.NamespacedName
	infraEnv *infraEnv
	// forgotten is a host without an Agent, of which nothing is told until it registers again.
	forgotten bool

	state, info string
	// published is the state that the Agent shows; a host gets its instruction only when everybody can see why.
	published string
	// due is when the state may end by itself.
	due       time.Time
	kind      string
	cluster   types.NamespacedName
	wanted    types.NamespacedName
	approved  bool
	requested requests
	role      models.HostRole
	bootstrap bool
	specError error
	// fencing is what the Secret holds that the Agent names.
	fencing fencing
	// backendError shows SpecSynced=False/BackendError for a moment, as the real service does on its own update conflicts.
	backendError bool

	// arrived is an inventory that was received and not yet looked at; the one before it stays visible until then.
	arrived, inventory *models.Inventory
	validation         validation
	failing            string

	stage                    models.HostStage
	stageInfo                string
	stages                   []models.HostStage
	stageStart, stageUpdated time.Time
	handedOver, stopped      bool
	// cannotPull tells why the host cannot pull an image.
	cannotPull func(image string) string
	// reports counts what the host reported; shown is how many of them the Agent has shown.
	reports, shown int

	deprovision *aiv1beta1.AgentDeprovisionInfo
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

	// name, spec and overrides are what the service has taken over: see takeOver.
	name             string
	spec             hiveext.AgentClusterInstallSpec
	overrides        string
	releaseImage     string
	kubeconfigSecret string
	hold             bool
	specError        error
	deleting         bool

	// prepared is true once the files of an installation were generated.
	prepared    bool
	lastFailure string
	failing     string
	// finalised is true once the controller in the cluster said that the operators are available; operatorsDone when that shows.
	finalised, operatorsDone bool
}

func (h *host) enter(state, info string, delay time.Duration) {
	h.state, h.info, h.due = state, info, time.Now().Add(delay)
}

func (c *cluster) enter(state, info string, delay time.Duration) {
	c.state, c.info, c.due = state, info, time.Now().Add(delay)
}

func (h *host) bound() bool { return h.cluster != types.NamespacedName{} }

func (h *host) dayTwo() bool { return h.kind == models.HostKindAddToExistingClusterHost }

// hostname is what the host will be called in its cluster.
func (h *host) hostname() string {
	switch {
	case h.requested.hostname != "":
		return h.requested.hostname
	case h.inventory != nil:
		return h.inventory.Hostname
	}
	return ""
}

// installationDisk is the disk that was asked for, else the first of those that are eligible: the service leaves fast and
// large disks to the workload.
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

// waiting is true before the installation starts.
func (c *cluster) waiting() bool {
	return slices.Contains([]string{
		models.ClusterStatusInsufficient, models.ClusterStatusReady, models.ClusterStatusPendingForInput,
	}, c.state)
}

// installingNow is true from the first boot into the installer until the last host is done.
func (c *cluster) installingNow() bool {
	return slices.Contains([]string{
		models.ClusterStatusInstalling, models.ClusterStatusInstallingPendingUserAction, models.ClusterStatusFinalizing,
	}, c.state)
}

// members are the hosts of a cluster in a stable order. With dayTwo false, those that are part of the first installation.
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

// touchHost has the Agent written and its cluster looked at again. Called with mu held.
func (s *Simulator) touchHost(h *host) {
	enqueue(s.agentQueue, h.key)
	if h.bound() {
		enqueue(s.clusterQueue, h.cluster)
	}
	s.notify()
}

// touchCluster has the cluster written and every host looked at again that is or wants to be part of it. Called with mu held.
func (s *Simulator) touchCluster(key types.NamespacedName) {
	enqueue(s.clusterQueue, key)
	for _, h := range s.hosts {
		if h.cluster == key || h.wanted == key {
			enqueue(s.agentQueue, h.key)
		}
	}
	s.notify()
}

// touchReferrers has the InfraEnvs looked at again that are bound to the cluster. Called with mu held.
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
