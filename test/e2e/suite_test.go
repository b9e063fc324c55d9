// Package e2e installs clusters from the samples, and breaks parts of the environment meanwhile. It runs on real
// Kubernetes, Cluster API and CAPM3 with simulated hardware, on the simulated or the real assisted-service. All
// specs share one laboratory; each has its own namespaces. Logs and, after a failure, the state of the clusters
// are kept in _artifacts/e2e-<backend>, or in the folder of LOGS.
package e2e

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/failures"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// startTimeout includes the first build of all tools, from empty caches.
	startTimeout = 45 * time.Minute
	// installTimeout is the timeout of an installation. A wait ends with its condition, so a timeout of ten
	// times the usual duration costs nothing. It prevents failures on slow or busy machines. Cluster API core
	// alone takes up to 30 s to connect.
	installTimeout = 20 * time.Minute
	// deleteTimeout is the timeout of a deletion: CAPM3 takes up to 30 s to notice that the last machine is
	// deleted.
	deleteTimeout = 8 * time.Minute
	// soon is the timeout of steps that do not wait for other controllers.
	soon = 3 * time.Minute
	// quiet is how long objects are observed for the lack of a change: longer than the longest deferral of our
	// managers.
	quiet = settleTime
)

// backendVariable is the environment variable that selects the assisted-service of the specs: see
// [lab.ParseBackend].
const backendVariable = "BACKEND"

// operatorVariable is the environment variable that selects the Bare Metal Operator of the hosts: see
// [lab.ParseBackend].
const operatorVariable = "BMO"

// authVariable is the environment variable for the authentication of assisted-service. "none" uses http without
// authentication; any other value uses tokens, and https with a private certificate authority.
const authVariable = "AUTH"

// logsVariable is the environment variable for the folder of logs below _artifacts; empty: the folder of the
// backend.
const logsVariable = "LOGS"

// longVariable is the environment variable that enables long runs. They install all samples, also those that the
// other assisted-service installs with each change, and retry a cluster of several hosts without authentication.
const longVariable = "LONG"

// coreVariable is the environment variable for the version of Cluster API core: a folder below test/tools, see
// [lab.Options].
const coreVariable = "CORE"

// hostJitter is the longest time of a host for each task of the Bare Metal Operator. So hosts of one cluster
// become ready one after the other, in varying order.
const hostJitter = 2 * time.Second

// flapping is how often the state of a cluster without hosts changes, as on an idle hub.
const flapping = time.Second

// onlyReal skips a spec that needs the real assisted-service.
func onlyReal() {
	GinkgoHelper()
	if laboratory.Assisted == nil {
		Skip("needs the real assisted-service: " + backendVariable + "=" + string(lab.Real))
	}
}

// onlySimulated skips a spec about a fault that only the simulator supports.
func onlySimulated() {
	GinkgoHelper()
	if laboratory.Service == nil {
		Skip("needs the simulated assisted-service")
	}
}

// laboratory is shared by all specs, laboratoryOptions are its options.
var (
	laboratory        *lab.Lab
	laboratoryOptions lab.Options
)

// applied are the clusters of the specs so far; deletions waits for those that are deleted in the background.
var applied struct {
	sync.Mutex
	clusters  []*lab.Cluster
	deletions sync.WaitGroup
	errors    []error
}

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(500 * time.Millisecond) // the default of Gomega would read a whole cluster without a pause
	RunSpecs(t, "end to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	backend, err := lab.ParseBackend("assisted-service", os.Getenv(backendVariable))
	Expect(err).NotTo(HaveOccurred())
	operator, err := lab.ParseBackend("Bare Metal Operator", os.Getenv(operatorVariable))
	Expect(err).NotTo(HaveOccurred())
	seed, err := lab.HostSeed(os.Stderr)
	Expect(err).NotTo(HaveOccurred())
	dir, err := filepath.Abs(filepath.Join("..", "..", "_artifacts", cmp.Or(os.Getenv(logsVariable), "e2e-"+string(backend))))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.RemoveAll(dir)).To(Succeed())
	laboratoryOptions = lab.Options{
		Dir: dir, Out: GinkgoWriter, CoreTools: os.Getenv(coreVariable), Backend: backend, BareMetal: operator,
		HostJitter: hostJitter, HostSeed: seed, Flapping: flapping, Auth: assistedsim.AuthLocal, HTTPS: true,
		Core: withInPlaceUpdates, ControlPlane: withInPlaceUpdates,
	}
	if backend == lab.Real {
		laboratoryOptions.BootDelay = hosts.BootTime
	}
	if os.Getenv(authVariable) == string(assistedsim.AuthNone) {
		laboratoryOptions.Auth, laboratoryOptions.HTTPS = assistedsim.AuthNone, false
	}
	laboratory, err = lab.New(ctx, laboratoryOptions)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(laboratory.Stop)
	health = followHealth(ctx)
}, NodeTimeout(startTimeout))

var _ = AfterSuite(func(ctx SpecContext) {
	if laboratory == nil {
		return
	}
	applied.deletions.Wait()
	Expect(applied.errors).To(BeEmpty(), "clusters that were deleted after their specs")
	Expect(laboratory.Failure()).NotTo(HaveOccurred())
	Expect(laboratory.Rack.Escaped()).To(BeEmpty(), "hosts that booted a foreign system")
	Expect(laboratory.UnrequestedLosses()).To(BeEmpty(), "installed nodes that lost their disks without a deletion of their Machines")
	expectNoPanic(ctx)
	health.expectPlausible()
	expectNoSecretsLogged()
	expectNoSecretsExposed(ctx, metav1.NamespaceAll)
}, NodeTimeout(2*deleteTimeout))

var _ = ReportAfterSuite("failures of specs", func(report Report) { failures.Report(os.Stdout, report) })

var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		dump(ctx)
	}
}, NodeTimeout(soon))

// apply applies a sample. The cluster is deleted in the background when the spec or container ends that applied
// it.
func apply(ctx context.Context, sample string, mutations lab.Mutations) *lab.Cluster {
	GinkgoHelper()
	cluster, err := laboratory.ApplySample(ctx, sample, mutations)
	Expect(err).NotTo(HaveOccurred())
	adopt(cluster)
	return cluster
}

// lightly reports whether clusters may have an API without a kube-apiserver, if a spec is not about that API.
// The real assisted-service needs more than that API.
func lightly() bool { return laboratory.Assisted == nil }

// adopt deletes a cluster in the background when the spec or container ends that applied it.
func adopt(cluster *lab.Cluster) {
	applied.Lock()
	applied.clusters = append(applied.clusters, cluster)
	applied.Unlock()
	DeferCleanup(func(ctx SpecContext) {
		if !CurrentSpecReport().Failed() {
			expectNoSecretsExposed(ctx, cluster.Namespace)
			deleteLater(cluster)
		}
	}, NodeTimeout(soon))
}

func deleteLater(cluster *lab.Cluster) {
	applied.deletions.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		defer cancel()
		cluster.ReleaseAPI()
		err := cluster.Delete(ctx)
		applied.Lock()
		defer applied.Unlock()
		if err != nil {
			applied.errors = append(applied.errors, err)
		}
	})
}

// waitAvailable waits for several clusters that install at the same time.
func waitAvailable(ctx context.Context, clusters ...*lab.Cluster) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, cluster := range clusters {
		Expect(cluster.WaitAvailable(ctx)).To(Succeed())
	}
}

// wait waits until done returns true for the state of the cluster.
func wait(ctx context.Context, cluster *lab.Cluster, what string, done func(*lab.State) bool) *lab.State {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	var state *lab.State
	Expect(cluster.Wait(ctx, what, func(s *lab.State) bool {
		state = s
		return done(s)
	})).To(Succeed())
	return state
}

// workloadOf returns an administrator's client of an installed cluster.
func workloadOf(cluster *lab.Cluster) client.Client {
	GinkgoHelper()
	workload, err := cluster.Workload()
	Expect(err).NotTo(HaveOccurred())
	return workload
}

// state reads a cluster.
func state(ctx context.Context, cluster *lab.Cluster) *lab.State {
	GinkgoHelper()
	s, err := cluster.State(ctx)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// ourManagers are the processes of this repository's managers.
func ourManagers() []*process.Process {
	return []*process.Process{laboratory.Env.Manager(env.Bootstrap), laboratory.Env.Manager(env.ControlPlane)}
}
