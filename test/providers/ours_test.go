package providers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/failures"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// root is the top of the repository.
const root = "../.."

// coreVariable is the environment variable for the version of Cluster API core: a folder below test/tools, see
// [lab.Options].
const coreVariable = "CORE"

// longVariable is the environment variable that enables the rules which take too long for every change.
const longVariable = "LONG"

// withTaints makes Cluster API core accept Machines with taints.
var withTaints = env.ManagerOptions{Variables: map[string]string{"EXP_MACHINE_TAINT_PROPAGATION": "true"}}

// accounts are the ServiceAccounts of our managers.
var accounts = map[string]string{
	env.Bootstrap:    "openshift-agent-bootstrap-system:openshift-agent-bootstrap-manager",
	env.ControlPlane: "openshift-agent-control-plane-system:openshift-agent-control-plane-manager",
}

var _ = ReportAfterSuite("failures of specs", func(report Report) { failures.Report(os.Stdout, report) })

// started is the hub once it runs; the logs of its managers may explain why a rule failed.
var started *env.Env

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && started != nil {
		AddReportEntry(failures.Evidence, ReportEntryVisibilityNever, lab.Evidence(context.Background(), started))
	}
})

func TestConformance(t *testing.T) {
	t.Parallel() // the tests of the command use the time in which this one waits
	RegisterFailHandler(Fail)
	builder, err := components.NewBuilder(root, os.Stdout)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	clusterctl, err := builder.Program(t.Context(), components.Clusterctl)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	conformance.Specs(ours(clusterctl))
	RunSpecs(t, "conformance")
}

// ours describes the providers of this repository in the laboratory.
func ours(clusterctl string) *conformance.Provider {
	return &conformance.Provider{
		Bootstrap: conformance.Component{
			Name:      "openshift-agent",
			Manifests: manifests("bootstrap"),
			Kind:      bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"),
			Template:  bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfigTemplate"),
			Change:    map[string]any{"additionalNTPSources": []any{"ntp.conformance.example.com"}},
		},
		ControlPlane: conformance.Component{
			Name:      "openshift-agent",
			Manifests: manifests("controlplane"),
			Kind:      controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlane"),
			Template:  controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlaneTemplate"),
		},
		Metadata: read("metadata.yaml"),
		Kinds: []schema.GroupVersionKind{
			hivev1.SchemeGroupVersion.WithKind("ClusterDeployment"),
			{Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall"},
			aiv1beta1.GroupVersion.WithKind("InfraEnv"),
			aiv1beta1.GroupVersion.WithKind("Agent"),
		},
		InfraMachine: lab.Metal3MachineKind,
		Registration: hivev1.SchemeGroupVersion.WithKind("ClusterDeployment"),
		Installed:    controlplanev1.InstalledCondition,
		Release:      release,
		Before:       before,
		Accepted: []string{
			"new rule: replicas must be 1 (single node), 2 (with fencing), 3, 4 or 5",    // takes 2, too, which the one before it refused
			"new rule: installerArguments: in boot mode DiskImage",                       // these had no effect there
			`.spec.replicas default: default added when there was none previously : "1"`, // it was 1 when omitted
			".status.versions minItems:",                                                 // of the status, which was never written empty
			"new rule: clusterName cannot change once the installation has started",      // it could not be changed at all
			".spec.config.baseDomain",                                                    // assisted-service refused all others
			"new rule: template may contain text and the variables",                      // a condition refused all others
			"new rule: agentLabels of agent-install.openshift.io are reserved",           // assisted-service overwrote such a label
			".hostRequirements.min",                                                      // takes numbers of bytes, too
			// Release and Kubernetes version are two fields since before the first release.
			"distributionVersion", ".spec.version", "kubernetesVersion", ".status.upgrade",
		},
		Templates: templates(),
		Variables: map[string]string{
			"BASE_DOMAIN": "example.com", "OPENSHIFT_VERSION": "4.20.1", "KUBERNETES_VERSION": "v1.33.5", "PULL_SECRET": `{"auths":{}}`,
			"API_VIP": "192.168.1.5", "INGRESS_VIP": "192.168.1.6", "MACHINE_NETWORK": "192.168.1.0/24",
			"MIRRORS_CONFIG_MAP": "mirrors", "NTP_SERVER": "ntp.example.com",
			"RELEASE_IMAGE":      "registry.example.com/release@sha256:" + strings.Repeat("0", 64),
			"CLUSTER_HTTP_PROXY": "http://proxy.example.com:3128", "CLUSTER_HTTPS_PROXY": "http://proxy.example.com:3128",
			"CLUSTER_NO_PROXY": ".example.com",
			"IPV6_API_VIP":     "fd00::5", "IPV6_INGRESS_VIP": "fd00::6", "IPV6_MACHINE_NETWORK": "fd00::/64",
			"IMAGE_URL": "http://images/rhcos.qcow2", "IMAGE_CHECKSUM": "http://images/rhcos.qcow2.sha256sum",
		},
		// From v1.13 on a Cluster without topology owns its infrastructure and control plane, but does not control them.
		OwnerGraph: string(read("test/providers/testdata/ownergraph-" + cmp.Or(os.Getenv(coreVariable),
			components.DefaultCoreTools) + ".golden")),
		NextVersion:      openshift.NextKubernetesVersion,
		RequestVersion:   requestVersion,
		Long:             os.Getenv(longVariable) != "",
		OfHosts:          ofHosts,
		DeletionOverride: map[string]string{"bootstrap.cluster.x-k8s.io/allow-deletion": "true"},
		Samples:          []conformance.Sample{conformance.Small, conformance.Full, conformance.Topology},
		Exempt: map[string]string{
			"P17": "hosts are not reinstalled on a date: OpenShift renews its certificates itself",
		},
		TaintsTaken:  true,
		Clusterctl:   clusterctl,
		Report:       filepath.Join(root, "_artifacts", "conformance.md"),
		Start:        start,
		RestoreMoved: restoreMoved,
	}
}

func read(path string) []byte {
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		panic(err)
	}
	return content
}

// manifests returns a function that renders the shipped manifests of a provider.
func manifests(provider string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		dir, err := filepath.Abs(filepath.Join(root, "config", provider, "default"))
		if err != nil {
			return nil, fmt.Errorf("cannot find the manifests: %w", err)
		}
		cmd := exec.CommandContext(ctx, "go", "tool", "kustomize", "build", dir)
		cmd.Dir = filepath.Join(root, "test", "tools", "manifests")
		return cmd.Output()
	}
}

// release writes a release as maintainers do.
func release(ctx context.Context, version, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./release", "-out", dir, "-version", version, "-registry",
		"registry.example.com/openshift-agent")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot write a release: %w: %s", err, out)
	}
	return nil
}

// before returns the CRDs of the former release; none if the checkout has no history.
func before(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	builder, err := components.NewBuilder(root, GinkgoWriter)
	if err != nil {
		return nil, fmt.Errorf("cannot find the former release: %w", err)
	}
	older, _, err := builder.Before(ctx)
	if errors.Is(err, components.ErrNoHistory) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the former release: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(older.Root(), "config", "*", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the CRDs of the former release: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a CRD of the former release: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// templates returns the cluster templates and the ClusterClass that are released.
func templates() map[string][]byte {
	all := map[string][]byte{}
	files, _ := filepath.Glob(filepath.Join(root, "config", "templates", "*.yaml"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		all[filepath.Base(file)] = content
	}
	return all
}

// hub is a laboratory.
type hub struct {
	*env.Env
	lab     *lab.Lab
	proxies map[string]*faultproxy.Proxy
}

// start starts a laboratory, or only the management cluster for a bare hub.
func start(ctx context.Context, options conformance.HubOptions) (conformance.Hub, error) {
	if options.Bare {
		args := []string{"--namespace=" + options.Namespace, "--watch-filter=" + options.WatchFilter}
		restricted := env.ManagerOptions{ExtraArgs: args}
		e, err := env.Start(ctx, env.Options{
			Dir: artifacts("target"), Out: GinkgoWriter, LeaveSignals: true,
			CoreTools: os.Getenv(coreVariable), Core: withTaints,
			Bootstrap: restricted, ControlPlane: restricted,
		})
		return &hub{Env: e}, err
	}
	if err := os.RemoveAll(artifacts("")); err != nil { // logs are appended to
		return nil, fmt.Errorf("cannot remove the logs of the last run: %w", err)
	}
	h := &hub{proxies: map[string]*faultproxy.Proxy{}}
	managers := map[string]env.ManagerOptions{}
	for name, account := range accounts {
		proxy, err := faultproxy.Listen(ctx, account, filepath.Join(artifacts("hub"), "kubeconfig"))
		if err != nil {
			return nil, err
		}
		path, err := proxy.Kubeconfig(artifacts("hub"))
		if err != nil {
			return nil, err
		}
		h.proxies[name], managers[name] = proxy, env.ManagerOptions{Env: []string{"KUBECONFIG=" + path}}
	}
	seed, err := lab.HostSeed(os.Stderr)
	if err != nil {
		return nil, err
	}
	operator, err := lab.ParseBackend("Bare Metal Operator", os.Getenv(operatorVariable))
	if err != nil {
		return nil, err
	}
	h.lab, err = lab.New(ctx, lab.Options{
		Dir: artifacts("hub"), Out: GinkgoWriter, BareMetal: operator, HostJitter: hostJitter, HostSeed: seed, Drain: drain,
		CoreTools: os.Getenv(coreVariable), Core: withTaints, Bootstrap: managers[env.Bootstrap], ControlPlane: managers[env.ControlPlane],
	})
	if err != nil {
		return nil, err
	}
	h.Env, started = h.lab.Env, h.lab.Env
	return h, nil
}

// hostJitter is the longest time a host takes for each step of the Bare Metal Operator.
const hostJitter = time.Second

// drain is how long Nodes of several releases coexist. It is longer than the manager defers a report on an
// object that it reported often. P39 and I13 check the reports of that time.
const drain = 2 * time.Second

func artifacts(name string) string {
	dir, err := filepath.Abs(filepath.Join(root, "_artifacts", "conformance", name))
	if err != nil {
		panic(err)
	}
	return dir
}

// Stop ends the laboratory.
func (h *hub) Stop() {
	if h.lab != nil {
		h.lab.Stop()
		for _, proxy := range h.proxies {
			proxy.Close()
		}
		return
	}
	h.Env.Stop()
}

// samples are the names of our samples.
var samples = map[conformance.Sample]string{conformance.Small: "sno", conformance.Full: "ha", conformance.Topology: "clusterclass"}

// machines are the numbers of hosts that the samples need.
var machines = map[conformance.Sample]int{conformance.Small: 1, conformance.Full: 5, conformance.Topology: 5}

// Apply applies a sample.
func (h *hub) Apply(ctx context.Context, o conformance.ClusterOptions) (conformance.Cluster, error) {
	mutations := lab.Mutations{Namespace: o.Namespace, ClusterName: o.Name, Without: o.Without, HoldAPI: o.Hold, Edit: o.Edit}
	if o.Sample == conformance.Small {
		mutations.LightAPI = true // no rule needs more of it; the other samples have kube-apiservers
	}
	if o.Replaceable {
		mutations.EtcdMembers, mutations.ExtraHosts = true, 1
	}
	if o.Sample == conformance.Topology {
		mutations.Divert = lab.Forward // for the version of the API server
		mutations.Edit = func(object *unstructured.Unstructured) {
			if o.Edit != nil {
				o.Edit(object)
			}
			splitWorkers(object)
		}
	}
	if o.NoHosts {
		mutations.ExtraHosts = -machines[o.Sample]
	}
	applied, err := h.lab.ApplySample(ctx, samples[o.Sample], mutations)
	return &cluster{applied, h.lab}, err
}

// splitWorkers replaces the MachineDeployment of a topology with two that have one Machine each: core upgrades one after the
// other by default.
func splitWorkers(object *unstructured.Unstructured) {
	fields := []string{"spec", "topology", "workers", "machineDeployments"}
	deployments, found, err := unstructured.NestedSlice(object.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	if !found {
		return
	}
	first, ok := deployments[0].(map[string]any)
	Expect(ok).To(BeTrue())
	first["replicas"] = int64(1)
	second := maps.Clone(first)
	second["name"] = "another"
	Expect(unstructured.SetNestedSlice(object.Object, []any{first, second}, fields...)).To(Succeed())
}

// Crash sets the proxies of both managers.
func (h *hub) Crash(namespace string) func() int {
	if h.lab == nil {
		return nil
	}
	for name, proxy := range h.proxies {
		proxy.CrashAtWrites(h.Manager(name), namespace, faultproxy.AfterWrites)
	}
	return func() int {
		crashes := 0
		for _, proxy := range h.proxies {
			crashes += proxy.StopCrashes()
		}
		return crashes
	}
}

// Writes counts the entries of both accounts in the audit log.
func (h *hub) Writes(namespace string, since time.Time) (map[string]int, error) {
	var writes audit.Requests
	for _, account := range accounts {
		requests, err := h.Requests("system:serviceaccount:"+account, since)
		if err != nil {
			return nil, err
		}
		writes = append(writes, requests.Writes().Where(func(r audit.Request) bool { return r.Namespace == namespace })...)
	}
	return writes.Count(), nil
}

// Panics counts the panics in the logs and the metrics of our managers.
func (h *hub) Panics(ctx context.Context) (int, error) {
	panics := 0
	for name := range accounts {
		content, err := os.ReadFile(h.Manager(name).LogPath)
		if err != nil {
			return 0, fmt.Errorf("cannot read a log: %w", err)
		}
		counted, err := h.Manager(name).Panics(ctx)
		if err != nil {
			return 0, err
		}
		// The log also has those of former processes.
		panics += counted + strings.Count(string(content), "Observed a panic")
	}
	return panics, nil
}

// Config returns the configuration of an administrator.
func (h *hub) Config() *rest.Config { return h.Env.Config() }

// cluster is a cluster of the laboratory.
type cluster struct {
	*lab.Cluster
	lab *lab.Lab
}

// Release makes the API of the cluster available.
func (c *cluster) Release() { c.ReleaseAPI() }

// Available waits until the cluster is installed and its etcd, if simulated, has settled: no host is released
// before.
func (c *cluster) Available(ctx context.Context) error {
	if err := c.WaitAvailable(ctx); err != nil || c.Etcd() == nil {
		return err
	}
	var unsettled error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		unsettled = c.EtcdSettled(ctx)
		return unsettled == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the etcd of %s is not settled: %w", c.Key(), errors.Join(unsettled, err))
	}
	return nil
}

// Forget stops the API server of a deleted cluster.
func (c *cluster) Forget() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The cluster is deleted: nothing else is done.
	_ = c.Delete(ctx)
}

// Disturb makes the host boot its discovery image again. assisted-service reports that for hosts that joined an
// installed cluster only. The host boots its disk again once its Node is not ready, and not within the second of
// its discovery. Conditions have no smaller unit, so a return within that second could not be detected.
func (c *cluster) Disturb(ctx context.Context, machine string) (func(context.Context) error, error) {
	m, err := c.machine(ctx, machine)
	if err != nil {
		return nil, err
	}
	host := c.lab.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
	host.WrongBoot()
	return func(ctx context.Context) error {
		defer host.Reboot()
		return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			m, err := c.machine(ctx, machine)
			return err == nil && lab.Condition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition).Status != metav1.ConditionTrue &&
				time.Since(assisted.AgentCondition(m.Agent, aiv1beta1.InstalledCondition).LastTransitionTime.Time) > time.Second, nil
		})
	}, nil
}

// requestVersion sets the release with a version of Kubernetes.
func requestVersion(cluster *clusterv1.Cluster, version string) error {
	release, err := openshift.FirstRelease(version)
	if err != nil {
		return err
	}
	return lab.SetTopologyVariable(&cluster.Spec.Topology, "distributionVersion", release)
}

// Upgrade offers the release to the cluster; the provider then requests it.
func (c *cluster) Upgrade(ctx context.Context, version string) error {
	const channel = "conformance"
	release, err := openshift.FirstRelease(version)
	if err != nil {
		return err
	}
	if _, err := c.Versions().Publish(release, channel); err != nil {
		return fmt.Errorf("cannot publish release %s: %w", version, err)
	}
	return c.Versions().SetChannel(ctx, channel)
}

// AgeKubeconfig sets the renewal date of the published kubeconfig to the past.
func (c *cluster) AgeKubeconfig(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name + "-kubeconfig"}}
	past := fmt.Sprintf(`{"metadata":{"annotations":{"controlplane.cluster.x-k8s.io/kubeconfig-renewal":%q}}}`,
		time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	if err := c.lab.Client().Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(past))); err != nil {
		return fmt.Errorf("cannot date back the kubeconfig: %w", err)
	}
	return nil
}

// RotateKubeconfig changes the kubeconfig of assisted-service.
func (c *cluster) RotateKubeconfig(ctx context.Context) error {
	secret, err := c.adminSecret(ctx)
	if err != nil {
		return err
	}
	secret.Data["kubeconfig"] = append(secret.Data["kubeconfig"], "# rotated\n"...)
	if err := c.lab.Client().Update(ctx, secret); err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return nil
}

// adminSecret returns the Secret with the kubeconfig of assisted-service.
func (c *cluster) adminSecret(ctx context.Context) (*corev1.Secret, error) {
	state, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: c.Namespace, Name: state.Installation.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}
	if err := c.lab.Client().Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	return secret, nil
}

// UsersKubeconfig returns the kubeconfig that docs/getting-started.md recommends to users.
func (c *cluster) UsersKubeconfig(ctx context.Context) ([]byte, error) {
	secret, err := c.adminSecret(ctx)
	if err != nil {
		return nil, err
	}
	return secret.Data["kubeconfig"], nil
}

// Ignition returns the Ignition overrides that assisted-service adds for the host.
func (c *cluster) Ignition(ctx context.Context, machine string) ([]byte, error) {
	m, err := c.machine(ctx, machine)
	if err != nil {
		return nil, err
	}
	return []byte(m.Agent.Spec.IgnitionConfigOverrides), nil
}

// machine returns a Machine that has an Agent.
func (c *cluster) machine(ctx context.Context, name string) (*lab.Machine, error) {
	state, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range state.Machines {
		if m.Machine.Name == name && m.Agent != nil {
			return &m, nil
		}
	}
	return nil, fmt.Errorf("no Agent of Machine %s", name) //nolint:err113 // for people
}

// restoreMoved restores the status of BareMetalHosts that are moved into a namespace, as the Bare Metal Operator
// does, where that operator does not run. CAPM3 stores the status in an annotation when it pauses a host.
func restoreMoved(ctx context.Context, target conformance.Hub, namespace string) error {
	if target.(*hub).Manager(env.BareMetal) != nil {
		return nil
	}
	c, err := client.NewWithWatch(target.Config(), client.Options{Scheme: target.(*hub).Scheme()})
	if err != nil {
		return fmt.Errorf("cannot restore hosts: %w", err)
	}
	events, err := c.Watch(ctx, &metal3api.BareMetalHostList{}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("cannot restore hosts: %w", err)
	}
	go func() {
		for event := range events.ResultChan() {
			host, ok := event.Object.(*metal3api.BareMetalHost)
			if !ok || host.Annotations[metal3api.StatusAnnotation] == "" || host.Status.Provisioning.State != "" {
				continue
			}
			patch := fmt.Sprintf(`{"status":%s}`, host.Annotations[metal3api.StatusAnnotation])
			if err := c.Status().Patch(ctx, host, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				GinkgoWriter.Println(err)
			}
		}
	}()
	return nil
}
