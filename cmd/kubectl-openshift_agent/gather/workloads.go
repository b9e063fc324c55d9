package gather

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is a program of a hub that works for clusters.
type manager struct {
	component string
	// provider is the value of the label with which clusterctl marks the program.
	provider string
	// names matches the names of the Deployments, StatefulSets or DaemonSets, which depend on the installer.
	names *regexp.Regexp
	// namespaces are the usual ones. They are searched if the user cannot list all namespaces.
	namespaces []string
}

// providerLabel is set by clusterctl, the Cluster API Operator and the manifests of the providers.
const providerLabel = "cluster.x-k8s.io/provider"

// managers returns the programs whose logs are read. MCE installs most of them into namespace multicluster-engine, and OpenShift
// runs the Bare Metal Operator with Ironic in openshift-machine-api.
func managers() []manager {
	const mce, machineAPI, bmoNamespace = "multicluster-engine", "openshift-machine-api", "baremetal-operator-system"
	names := func(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }
	return []manager{
		{
			"bootstrap-openshift-agent", "bootstrap-openshift-agent", names(`openshift-agent-bootstrap-.*`),
			[]string{"openshift-agent-bootstrap-system", mce},
		},
		{
			"control-plane-openshift-agent", "control-plane-openshift-agent", names(`openshift-agent-control-plane-.*`),
			[]string{"openshift-agent-control-plane-system", mce},
		},
		{"cluster-api", "cluster-api", names(`(?:mce-)?capi-controller-manager`), []string{"capi-system", mce}},
		{"metal3", "infrastructure-metal3", names(`(?:mce-)?capm3-controller-manager`), []string{"capm3-system", mce}},
		{"ipam-metal3", "ipam-metal3", names(`ipam-controller-manager|metal3-ipam-.*`), []string{"metal3-ipam-system", "capm3-system", mce}},
		{
			"baremetal-operator", "", names(`(?:metal3-)?baremetal-operator(?:-controller-manager)?|metal3-image-customization`),
			[]string{bmoNamespace, machineAPI},
		},
		{
			"ironic", "", names(`(?:baremetal-operator-)?ironic(?:-service)?|metal3|metal3-ironic.*`),
			[]string{bmoNamespace, "ironic-system", machineAPI},
		},
		{
			"assisted-service", "", names(`assisted-service|assisted-image-service|infrastructure-operator|agentinstalladmission`),
			[]string{mce, "assisted-installer", "assisted-service"},
		},
		{"hive", "", names(`hive-operator|hive-controllers|hive-clustersync`), []string{"hive", mce}},
	}
}

// runs reports whether a workload runs the program.
func (m *manager) runs(o *unstructured.Unstructured) bool {
	return m.provider != "" && o.GetLabels()[providerLabel] == m.provider || m.names.MatchString(o.GetName())
}

// workload is a Deployment, StatefulSet or DaemonSet of a manager.
type workload struct {
	component, kind, namespace, name string
	selector                         map[string]string
}

// String returns the workload for messages.
func (w workload) String() string { return w.kind + " " + w.namespace + "/" + w.name }

// workloads returns the workloads of all managers. What cannot be read is recorded.
func (g *gatherer) workloads(ctx context.Context) []workload {
	var found []workload
	for _, name := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		k := kind{group: "apps", name: name}
		all, err := g.list(ctx, k, "v1")
		if err != nil {
			g.gap(k.title()+" of all namespaces", err)
			all = append(all, g.usual(ctx, k)...)
		}
		found = append(found, workloadsOf(name, all)...)
	}
	slices.SortFunc(found, func(a, b workload) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.String(), b.String()))
	})
	return slices.CompactFunc(found, func(a, b workload) bool { return a.component == b.component && a.String() == b.String() })
}

// usual lists a kind in the usual namespaces of the managers.
func (g *gatherer) usual(ctx context.Context, k kind) []unstructured.Unstructured {
	namespaces := sets.New[string]()
	for _, m := range managers() {
		namespaces.Insert(m.namespaces...)
	}
	var all []unstructured.Unstructured
	for _, namespace := range sets.List(namespaces) {
		found, err := g.list(ctx, k, "v1", client.InNamespace(namespace))
		if err != nil {
			g.gap("logs of managers in namespace "+namespace, err)
		}
		all = append(all, found...)
	}
	return all
}

func workloadsOf(kindName string, objects []unstructured.Unstructured) []workload {
	var found []workload
	for i := range objects {
		for _, m := range managers() {
			if m.runs(&objects[i]) {
				selector, _, _ := unstructured.NestedStringMap(objects[i].Object, "spec", "selector", "matchLabels")
				found = append(found, workload{
					component: m.component, kind: kindName, namespace: objects[i].GetNamespace(), name: objects[i].GetName(), selector: selector,
				})
				break
			}
		}
	}
	return found
}
