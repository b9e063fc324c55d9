package clusterctl

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// installTimeout and deleteTimeout are what all clusters together may take on a busy machine.
	installTimeout = 8 * time.Minute
	deleteTimeout  = 5 * time.Minute
	soon           = time.Minute
)

// flavours are the cluster templates that are released, by the end of their names, with the hosts of a cluster.
var flavours = map[string]struct {
	controlPlanes, workers string
	hosts                  int
	version                string
}{
	"":            {controlPlanes: "3", workers: "2", hosts: 5},
	"-compact":    {controlPlanes: "3", workers: "0", hosts: 3},
	"-sno":        {controlPlanes: "1", workers: "0", hosts: 1},
	"-disk-image": {controlPlanes: "3", workers: "2", hosts: 5},
	"-okd":        {controlPlanes: "3", workers: "2", hosts: 5, version: "4.19.0-okd-scos.17"},
	"-topology":   {controlPlanes: "3", workers: "2", hosts: 5},
}

func TestAReleaseIsAllThatAUserNeeds(t *testing.T) {
	w := newWorld(t)
	clusters := map[string]*lab.Cluster{}
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"clusterctl installs the release before", w.install},
		{"clusters are made of every template", func() { clusters = w.makeClusters() }},
		{"clusterctl describes a cluster", func() { w.describe(clusters[""]) }},
		{"clusterctl upgrades to the release after, and no host notices", func() { w.upgrade(clusters) }},
		{"clusters are deleted under the release after", func() { w.deleteClusters(clusters) }},
	} {
		if !t.Run(step.name, func(inner *testing.T) {
			outer := w.T
			w.T = inner
			defer func() { w.T = outer }()
			step.do()
		}) {
			return // what follows builds on it
		}
	}
}

func (w *world) install() {
	w.clusterctl(nil, "init", "--core", "cluster-api:"+w.core, "--infrastructure", "metal3:"+w.metal3,
		"--bootstrap", "openshift-agent:"+before, "--control-plane", "openshift-agent:"+before, "--wait-providers")
	w.expectRelease(before)
}

// expectRelease checks that both managers are those of a release, and say so in all places.
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
	g.Expect(first).To(ContainSubstring("Starting manager"), "the first line says what runs")
}

// kebab is how the managers are called in names.
var kebab = map[string]string{env.Bootstrap: "bootstrap", env.ControlPlane: "control-plane"}

// makeClusters makes a cluster of each template that is released, all at the same time.
func (w *world) makeClusters() map[string]*lab.Cluster {
	g := NewWithT(w)
	templates := filepath.Join(w.repository, controlPlaneLabel, before)
	files, err := filepath.Glob(filepath.Join(templates, "cluster-template*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(flavours)), "each template that is released is tried")
	clusters := map[string]*lab.Cluster{}
	for _, file := range files {
		flavour := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "cluster-template"), ".yaml")
		wanted, known := flavours[flavour]
		g.Expect(known).To(BeTrue(), "%s", file)
		clusters[flavour] = w.makeCluster(file, flavour, wanted.version, wanted.controlPlanes, wanted.workers)
		g.Expect(clusters[flavour].Hosts).To(HaveLen(wanted.hosts), file)
	}
	ctx, cancel := context.WithTimeout(w.Context(), installTimeout)
	defer cancel()
	for _, cluster := range clusters {
		g.Expect(cluster.WaitAvailable(ctx)).To(Succeed())
	}
	return clusters
}

func (w *world) makeCluster(template, flavour, version, controlPlanes, workers string) *lab.Cluster {
	w.Helper()
	g := NewWithT(w)
	name, namespace := "lab"+flavour, "journey"+flavour
	g.Expect(w.lab.EnsureNamespace(w.Context(), namespace)).To(Succeed())
	if flavour == "-topology" {
		w.applyAll(filepath.Join(filepath.Dir(template), "clusterclass-agent.yaml"), namespace)
	}
	if version == "" {
		version = "4.19.10"
	}
	manifests := w.clusterctl(map[string]string{
		"OPENSHIFT_VERSION": version, "BASE_DOMAIN": "lab.example.com", "MACHINE_NETWORK": "192.168.111.0/24", "API_VIP": "192.168.111.5", "INGRESS_VIP": "192.168.111.6",
		"PULL_SECRET": `{"auths":{}}`, "IMAGE_URL": "http://images.example.com/rhcos.qcow2", "IMAGE_CHECKSUM": "http://images.example.com/rhcos.qcow2.sha256sum",
	}, "generate", "cluster", name, "--from", template, "--target-namespace", namespace, "--control-plane-machine-count", controlPlanes, "--worker-machine-count", workers)
	cluster, err := w.lab.ApplyManifests(w.Context(), []byte(manifests), lab.Mutations{Namespace: namespace, ClusterName: name, LightAPI: true})
	g.Expect(err).NotTo(HaveOccurred())
	return cluster
}

// describe checks that the tree of an installed cluster has everything that belongs to it, in its place and in good order.
func (w *world) describe(cluster *lab.Cluster) {
	g := NewWithT(w)
	state, err := cluster.State(w.Context())
	g.Expect(err).NotTo(HaveOccurred())
	lines := []string{
		`Cluster/` + cluster.Name + `\s+5/5\s+5\s+5\s+5`,
		`├─ClusterInfrastructure - Metal3Cluster/` + cluster.Name,
		`├─ControlPlane - OpenshiftAssistedControlPlane/` + cluster.Name + `\s+3/3\s+3\s+3\s+3`,
		`└─Workers`,
		`└─MachineDeployment/` + cluster.Name + `-worker\s+2/2\s+2\s+2\s+2`,
		`─Installed\s+True\s+Installed`, `─KubeconfigAvailable\s+True`, `─MachinesCreated\s+True`, `─ReleaseImageResolved\s+True`,
		`─BootstrapConfigReady\s+True\s+HostInstalled`,
	}
	for _, m := range state.Machines {
		lines = append(lines, `─Machine/`+m.Name+`\s+1\s+1\s+1\s+1`)
	}
	g.Expect(lines).To(HaveLen(15))
	g.Eventually(func(g Gomega) { // some counters are told some seconds later
		tree := w.clusterctl(nil, "describe", "cluster", cluster.Name, "--namespace", cluster.Namespace, "--grouping=false", "--show-conditions", "all", "--color=false")
		for _, line := range lines {
			g.Expect(tree).To(MatchRegexp(line))
		}
		g.Expect(tree).NotTo(MatchRegexp(`─(Available|Ready|UpToDate|[A-Za-z]+(Ready|Available|UpToDate|Healthy|Initialized))\s+(False|Unknown)`))
	}).WithTimeout(soon).WithPolling(2 * time.Second).Should(Succeed())
}

// upgrade upgrades both providers beside the installed clusters.
func (w *world) upgrade(clusters map[string]*lab.Cluster) {
	g := NewWithT(w)
	boots := w.boots(clusters)
	w.publish(after)
	plan := w.clusterctl(nil, "upgrade", "plan")
	w.Log(plan)
	for _, label := range []string{"bootstrap-openshift-agent", controlPlaneLabel} {
		g.Expect(plan).To(MatchRegexp(`(?m)^` + label + `\s.*\s` + regexp.QuoteMeta(before) + `\s+` + regexp.QuoteMeta(after) + `\s*$`))
	}
	w.clusterctl(nil, "upgrade", "apply", "--contract", "v1beta2", "--wait-providers")
	w.expectRelease(after)
	ctx, cancel := context.WithTimeout(w.Context(), installTimeout)
	defer cancel()
	for _, cluster := range clusters {
		g.Expect(cluster.WaitAvailable(ctx)).To(Succeed())
	}
	g.Expect(w.boots(clusters)).To(Equal(boots), "no host was booted for it")
}

// boots is how often each host was booted.
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
	gone := make(chan error, len(clusters))
	for _, cluster := range clusters {
		go func() { gone <- cluster.Delete(ctx) }()
	}
	for range clusters {
		NewWithT(w).Expect(<-gone).To(Succeed())
	}
	NewWithT(w).Expect(w.lab.Rack.Escaped()).To(BeEmpty(), "hosts that booted anything but what they were given")
	w.deleteNamespaces(clusters)
}

// deleteNamespaces deletes what is left of the users' own: templates, Secrets, hosts.
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
