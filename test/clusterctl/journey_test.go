package clusterctl

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	// installTimeout and deleteTimeout are the timeouts for all clusters together on a busy machine.
	installTimeout = 15 * time.Minute
	deleteTimeout  = 10 * time.Minute
	soon           = 3 * time.Minute
)

// flavor has the parameters of a cluster template.
type flavor struct {
	controlPlanes, workers string
	// hosts is the number of hosts of the installed cluster. Without hosts no cluster is created: the API
	// server only validates the output of clusterctl. Such a template differs only in values from an installed
	// one. It equals the sample that the end-to-end tests install (see
	// TestClusterTemplatesEqualSamplesWithVariables in config).
	hosts   int
	version string
	// nightly templates are installed only by the nightly tests; otherwise they are validated.
	nightly bool
}

// installed reports whether this run creates a cluster of the template. LONG=1 includes nightly templates.
func (f flavor) installed() bool { return f.hosts > 0 && (!f.nightly || os.Getenv("LONG") != "") }

// flavors are the released cluster templates, by the suffix of their names.
var flavors = map[string]flavor{
	"":              {controlPlanes: "3", workers: "0", hosts: 3},
	"-compact":      {controlPlanes: "3", workers: "0", hosts: 3, nightly: true},
	"-sno":          {controlPlanes: "1", workers: "0", hosts: 1},
	"-disk-image":   {controlPlanes: "3", workers: "1", hosts: 4},
	"-okd":          {controlPlanes: "3", workers: "1", hosts: 4, version: "4.19.0-okd-scos.17", nightly: true},
	"-arbiter":      {controlPlanes: "3", workers: "0", hosts: 3, version: "4.20.4", nightly: true},
	"-two-node":     {controlPlanes: "2", workers: "0", hosts: 2, version: "4.22.1"},
	"-topology":     {controlPlanes: "3", workers: "1", hosts: 4},
	"-dual-stack":   {controlPlanes: "3", workers: "0"},
	"-disconnected": {controlPlanes: "3", workers: "0"},
	"-proxy":        {controlPlanes: "3", workers: "0"},
}

// variables are the variables that clusterctl requires, except the version.
var variables = map[string]string{
	"BASE_DOMAIN": "lab.example.com", "MACHINE_NETWORK": "192.168.111.0/24", "API_VIP": "192.168.111.5",
	"INGRESS_VIP": "192.168.111.6", "PULL_SECRET": `{"auths":{}}`,
	"IMAGE_URL": "http://images.example.com/rhcos.qcow2", "IMAGE_CHECKSUM": "http://images.example.com/rhcos.qcow2.sha256sum",
	"IPV6_MACHINE_NETWORK": "2001:db8::/64", "IPV6_API_VIP": "2001:db8::5", "IPV6_INGRESS_VIP": "2001:db8::6", "NTP_SERVER": "ntp.example.com",
	"CLUSTER_HTTP_PROXY": "http://proxy.example.com:3128", "CLUSTER_HTTPS_PROXY": "http://proxy.example.com:3128",
	"CLUSTER_NO_PROXY": "*.example.com,192.168.111.0/24",
	"RELEASE_IMAGE":    "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("0", 64), "MIRRORS_CONFIG_MAP": "mirrors",
}

// A cluster of the template with this suffix needs the ClusterClass of this file.
const topologySuffix, classFile = "-topology.yaml", "clusterclass-agent.yaml"

func TestUserNeedsOnlyRelease(t *testing.T) {
	w := newWorld(t)
	clusters := map[string]*lab.Cluster{}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"clusterctl installs the previous release", w.install},
		{"clusters are created of every template", func() { clusters = w.makeClusters(documented, w.templates(w.before)) }},
		{"the user gets the kubeconfig of a cluster", w.verifyDocumented},
		{"clusterctl describes a cluster", func() { w.describe(clusters["lab-disk-image"]) }},
		{"clusterctl upgrades to the new release without effect on hosts", func() { w.upgrade(clusters) }},
		{"clusters are created of every changed template", func() { w.makeNewClusters(clusters) }},
		{"clusterctl uninstalls and installs the providers without effect on hosts", func() { w.reinstall(clusters) }},
		{"clusters are deleted with the new release", func() { w.deleteClusters(clusters) }},
		{"the rights for hubs on OpenShift are files of the release", func() { w.run(openShiftPage, "rights") }},
		{"clusterctl uninstalls the providers with their kinds", w.uninstall},
	} {
		if !t.Run(step.name, func(inner *testing.T) {
			outer := w.T
			w.T = inner
			defer func() { w.T = outer }()
			step.do()
		}) {
			return // the next steps depend on it
		}
	}
}

func (w *world) install() {
	w.run(readme, "providers")
	w.expectRelease(w.before)
}

// expectRelease checks that both managers belong to a release, and report its version in all places.
func (w *world) expectRelease(version string) {
	w.Helper()
	g := NewWithT(w)
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		g.Eventually(func() (string, error) { return w.metrics(name) }).WithTimeout(soon).
			Should(MatchRegexp(`(?m)^openshift_agent_build_info\{.*version="` + regexp.QuoteMeta(version) + `"\} 1$`))
		running := w.deployments.Process(name)
		log, err := os.ReadFile(running.LogPath)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(log)).To(ContainSubstring(`"Starting manager" manager="openshift-agent-%s" version="%s"`, kebab[name], version))
		out, err := exec.CommandContext(w.Context(), running.Path, "--version").Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(out)).To(HavePrefix("openshift-agent-" + kebab[name] + " " + version + " (revision "))
	}
	log, err := os.ReadFile(filepath.Join(w.lab.Dir(), env.Bootstrap+".log"))
	g.Expect(err).NotTo(HaveOccurred())
	first, _, _ := strings.Cut(string(log), "\n")
	g.Expect(first).To(ContainSubstring("Starting manager"), "the first line has the version")
}

// kebab are the names of the managers in object names.
var kebab = map[string]string{env.Bootstrap: "bootstrap", env.ControlPlane: "control-plane"}

// makeClusters creates a cluster of each template, all in parallel. The names of clusters and namespaces begin
// with prefix.
func (w *world) makeClusters(prefix string, templates map[string]string) map[string]*lab.Cluster {
	g := NewWithT(w)
	clusters := map[string]*lab.Cluster{}
	for _, ending := range slices.Sorted(maps.Keys(templates)) {
		name, file, wanted := prefix+ending, templates[ending], flavors[ending]
		if !wanted.installed() {
			w.expectAccepted(file, name, wanted)
			continue
		}
		if name == documented {
			clusters[name] = w.makeDocumented()
		} else {
			clusters[name] = w.makeCluster(file, name, wanted)
		}
		g.Expect(clusters[name].Hosts).To(HaveLen(wanted.hosts), file)
		if len(clusters) == 1 { // one suffices; now, because the smallest is installed before the last one is created
			w.describeInstallation(clusters[name])
		}
	}
	ctx, cancel := context.WithTimeout(w.Context(), installTimeout)
	defer cancel()
	w.awaitAvailable(ctx, clusters)
	return clusters
}

// awaitAvailable waits until clusters are available.
func (w *world) awaitAvailable(ctx context.Context, clusters map[string]*lab.Cluster, explanation ...any) {
	w.Helper()
	for _, cluster := range clusters {
		NewWithT(w).Expect(cluster.WaitAvailable(ctx)).To(Succeed(), explanation...)
	}
}

// templates returns the cluster templates of a release, by suffix.
func (w *world) templates(version string) map[string]string {
	w.Helper()
	g := NewWithT(w)
	files, err := filepath.Glob(filepath.Join(w.gitHub.release(repository, version), "cluster-template*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	found := map[string]string{}
	for _, file := range files {
		ending := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "cluster-template"), ".yaml")
		g.Expect(flavors).To(HaveKey(ending), "each released template is tested")
		found[ending] = file
	}
	return found
}

// makeNewClusters creates clusters of the templates that are new or changed in the new release.
func (w *world) makeNewClusters(clusters map[string]*lab.Cluster) {
	old, others := w.templates(w.before), w.templates(w.after)
	NewWithT(w).Expect(others).To(HaveLen(len(flavors)))
	maps.DeleteFunc(others, func(ending, file string) bool {
		return old[ending] != "" && w.template(old[ending]) == w.template(file)
	})
	w.Logf("new and changed templates: %q", slices.Sorted(maps.Keys(others)))
	maps.Copy(clusters, w.makeClusters("new", others))
}

// template returns the content of a template and the objects that it needs.
func (w *world) template(file string) string {
	w.Helper()
	content, err := os.ReadFile(file)
	NewWithT(w).Expect(err).NotTo(HaveOccurred())
	if !strings.HasSuffix(file, topologySuffix) {
		return string(content)
	}
	class, err := os.ReadFile(filepath.Join(filepath.Dir(file), classFile))
	NewWithT(w).Expect(err).NotTo(HaveOccurred())
	return string(content) + string(class)
}

func (w *world) makeCluster(template, name string, wanted flavor) *lab.Cluster {
	w.Helper()
	namespace := w.namespaceOf(name)
	if strings.HasSuffix(template, topologySuffix) {
		w.applyAll(filepath.Join(filepath.Dir(template), classFile), namespace)
	}
	mutations := lab.Mutations{Namespace: namespace, ClusterName: name, LightAPI: true}
	cluster, err := w.lab.ApplyManifests(w.Context(), w.generate(template, name, wanted), mutations)
	NewWithT(w).Expect(err).NotTo(HaveOccurred())
	return cluster
}

// expectAccepted checks that the API server accepts the output of clusterctl for a template.
func (w *world) expectAccepted(template, name string, wanted flavor) {
	w.Helper()
	g := NewWithT(w)
	namespace := w.namespaceOf(name)
	objects, err := yaml.ToUnstructured(w.generate(template, name, wanted))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).NotTo(BeEmpty())
	for i := range objects {
		g.Expect(objects[i].GetNamespace()).To(Equal(namespace))
		g.Expect(w.lab.Client().Create(w.Context(), &objects[i], client.DryRunAll,
			client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed(), "%s of %s", objects[i].GetKind(), template)
	}
}

// namespaceOf creates the namespace of a cluster.
func (w *world) namespaceOf(cluster string) string {
	w.Helper()
	namespace := "journey-" + cluster
	NewWithT(w).Expect(w.lab.EnsureNamespace(w.Context(), namespace)).To(Succeed())
	return namespace
}

// generate returns the output of clusterctl for a template.
func (w *world) generate(template, name string, wanted flavor) []byte {
	w.Helper()
	values := maps.Clone(variables)
	values["OPENSHIFT_VERSION"] = cmp.Or(wanted.version, "4.19.10")
	var err error
	values["KUBERNETES_VERSION"], err = openshift.KubernetesVersion(values["OPENSHIFT_VERSION"])
	NewWithT(w).Expect(err).NotTo(HaveOccurred())
	return []byte(w.clusterctl(values, "generate", "cluster", name, "--from", template, "--target-namespace", "journey-"+name,
		"--control-plane-machine-count", wanted.controlPlanes, "--worker-machine-count", wanted.workers))
}

// tree returns the output of clusterctl for a cluster and its Machines.
func (w *world) tree(cluster *lab.Cluster, args ...string) string {
	w.Helper()
	return w.clusterctl(nil, append([]string{
		"describe", "cluster", cluster.Name, "--namespace", cluster.Namespace,
		"--color=false", "--grouping=false",
	}, args...)...)
}

// describeInstallation checks that the tree of a cluster during its installation shows the cause of the wait.
func (w *world) describeInstallation(cluster *lab.Cluster) {
	w.Helper()
	NewWithT(w).Eventually(func(g Gomega) {
		g.Expect(w.tree(cluster, "--show-conditions",
			"OpenshiftAssistedControlPlane")).To(MatchRegexp(`─Installed\s+False\s+[A-Za-z]+\s+[0-9a-z]+ +[A-Za-z0-9*]+ `),
			"a reason, and a message")
	}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed())
}

// describe checks that the tree of an installed cluster has all its objects in their places, and that all are
// ready.
func (w *world) describe(cluster *lab.Cluster) {
	g := NewWithT(w)
	state, err := cluster.State(w.Context())
	g.Expect(err).NotTo(HaveOccurred())
	key := cluster.Namespace + "/" + cluster.Name
	lines := []string{
		`Cluster ` + key + `\s+4/4\s+4\s+4\s+4`,
		`├─Metal3Cluster ` + key,
		`├─OpenshiftAssistedControlPlane ` + key + `\s+3/3\s+3\s+3\s+3`,
		`└─Workers`,
		`└─MachineDeployment ` + key + `-worker,?\s+1/1\s+1\s+1\s+1`,
		`─Installed\s+True\s+Installed`, `─KubeconfigAvailable\s+True`, `─MachinesCreated\s+True`, `─ReleaseImageResolved\s+True`,
		`─BootstrapConfigReady\s+True\s+HostInstalled`,
	}
	var parts []string
	for _, m := range state.Machines {
		machine := cluster.Namespace + "/" + m.Name
		lines = append(lines, `─Machine `+machine+`, v\S+\s+1\s+1\s+1\s+1`)
		parts = append(parts, `─Machine `+machine+`, .*\n[│ ]+├─Metal3Machine `+cluster.Namespace+"/"+m.Infra.GetName()+
			` +True +Ready .*\n[│ ]+└─OpenshiftAssistedConfig `+machine+` +True +HostInstalled `)
	}
	w.Log(w.clusterctl(nil, "describe", "cluster", cluster.Name, "--namespace", cluster.Namespace, "--color=false"))
	w.Log(w.clusterctl(nil, "describe", "cluster", cluster.Name, "--namespace", cluster.Namespace, "--grouping=false",
		"--show-conditions", "all", "--color=false"))
	w.Log(w.clusterctl(nil, "describe", "cluster", cluster.Name, "--namespace", cluster.Namespace, "--grouping=false",
		"--echo", "--show-resourcesets", "--show-templates", "--color=false"))
	g.Expect(lines).To(HaveLen(14))
	g.Eventually(func(g Gomega) { // some counters arrive seconds later
		echo := w.tree(cluster, "--echo")
		for _, part := range parts {
			g.Expect(echo).To(MatchRegexp(part))
		}
		tree := w.tree(cluster, "--show-conditions", "all")
		for _, line := range lines {
			g.Expect(tree).To(MatchRegexp(line))
		}
		g.Expect(tree).NotTo(MatchRegexp(`─(Available|Ready|UpToDate|[A-Za-z]+(Ready|Available|UpToDate|Healthy|Initialized))\s+(False|Unknown)`))
	}).WithTimeout(soon).WithPolling(2 * time.Second).Should(Succeed())
}

// upgrade upgrades both providers while clusters are installed.
func (w *world) upgrade(clusters map[string]*lab.Cluster) {
	g := NewWithT(w)
	w.awaitReconciled() // the previous release has finished its writes
	boots, objects := w.boots(clusters), w.settledObjects(clusters)
	w.publish(w.builder, w.after)
	plan := w.run(upgradePage, "upgrade")
	for _, label := range []string{"bootstrap-openshift-agent", controlPlaneLabel} {
		g.Expect(plan).To(MatchRegexp(`(?m)^` + label + `\s.*\s` + regexp.QuoteMeta(w.before) + `\s+` + regexp.QuoteMeta(w.after) + `\s*$`))
	}
	w.expectRelease(w.after)
	ctx, cancel := context.WithTimeout(w.Context(), installTimeout)
	defer cancel()
	w.awaitAvailable(ctx, clusters)
	w.awaitReconciled()
	g.Expect(w.boots(clusters)).To(Equal(boots), "the upgrade boots no host")
	g.Expect(changes(objects, w.objects(clusters))).To(BeEmpty(), "the new release accepts the objects of the previous one")
	w.awaitAvailable(ctx, clusters, "and still is, after all objects were reconciled")
}

// expectNothingRefused checks that our managers had the rights for all requests since begin.
func (w *world) expectNothingRefused() {
	w.Helper()
	g := NewWithT(w)
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		requests, err := w.lab.Env.Requests(w.deployments.Process(name).User, w.begin)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests).NotTo(BeEmpty())
		for _, request := range requests {
			g.Expect(request.Code).NotTo(Equal(http.StatusForbidden), "%s must be allowed to %s %s", request.User, request.Verb, request.Resource)
		}
	}
}

// boots returns the number of boots of each host.
func (w *world) boots(clusters map[string]*lab.Cluster) map[string]int {
	w.Helper()
	boots := map[string]int{}
	for _, cluster := range clusters {
		for _, host := range cluster.Hosts {
			key := path.Join(host.Namespace, host.Name)
			machine := w.lab.Rack.Host(key)
			NewWithT(w).Expect(machine).NotTo(BeNil(), key)
			all := machine.Boots()
			NewWithT(w).Expect(all).NotTo(BeEmpty(), key)
			NewWithT(w).Expect(all[len(all)-1].System).To(Equal(hosts.Installed), key)
			boots[key] = len(all)
		}
	}
	return boots
}

func (w *world) deleteClusters(clusters map[string]*lab.Cluster) {
	ctx, cancel := context.WithTimeout(w.Context(), deleteTimeout)
	defer cancel()
	deleted := make(chan error, len(clusters))
	for _, cluster := range clusters {
		go func() { deleted <- cluster.Delete(ctx) }()
	}
	for range clusters {
		NewWithT(w).Expect(<-deleted).To(Succeed())
	}
	NewWithT(w).Expect(w.lab.Rack.Escaped()).To(BeEmpty(), "hosts that booted another image than the provisioned one")
	NewWithT(w).Expect(w.lab.UnrequestedLosses()).To(BeEmpty(),
		"installed Nodes whose disks were wiped although their Machines were not deleted")
	w.expectNothingRefused()
	w.deleteNamespaces(clusters)
}

// deleteNamespaces deletes the remaining objects of the users: templates, Secrets, hosts.
func (w *world) deleteNamespaces(clusters map[string]*lab.Cluster) {
	w.Helper()
	g := NewWithT(w)
	for _, cluster := range clusters {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace}}
		g.Expect(w.lab.Client().Delete(w.Context(), namespace)).To(Succeed())
	}
	for _, cluster := range clusters {
		g.Eventually(func() error {
			return w.lab.Client().Get(w.Context(), client.ObjectKey{Name: cluster.Namespace}, &corev1.Namespace{})
		}).WithTimeout(2*soon).WithPolling(time.Second).Should(MatchError(apierrors.IsNotFound, "IsNotFound"), cluster.Namespace)
	}
}
