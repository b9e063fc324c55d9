package components

import (
	"cmp"
	"path/filepath"
)

// DefaultCoreTools is the folder of test/tools with the default version of Cluster API core.
const DefaultCoreTools = "cluster-api"

// Component is a program that is built from its own module in test/tools.
type Component struct {
	// tools is the folder of test/tools. It is empty for programs of this repository's own modules, which the go
	// command keeps up to date.
	tools string
	// own is the folder of that module in the repository; empty means the module of the product.
	own string
	// module is the built module, whose version is part of the program's name.
	module string
	// binary is the name of the program, pkg its package; empty means the tool in the go.mod of the folder.
	binary, pkg string
	// manifests is the folder of a manager's manifests in the module; empty means config/default next to its
	// package.
	manifests string
	// versioned programs get their version from the linker, as in Kubernetes' own build.
	versioned bool
	// variables are string variables of the program that the linker sets, by full name.
	variables map[string]string
	// prebuilt programs may come from another place: see [Assets].
	prebuilt bool
	// cost is the CPU time in seconds of a build with empty caches, after the previous components of its
	// family: see [lanes].
	cost int
	// family is the name of components with mostly the same packages at the same versions.
	family string
}

// A family is named after the version of Kubernetes' libraries that its components share.
const (
	kubernetesFamily = "k8s.io 0.36"
	metal3Family     = "k8s.io 0.35"
	serviceFamily    = "k8s.io 0.29"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	coreModule       = "sigs.k8s.io/cluster-api"
	metal3Module     = "github.com/metal3-io/cluster-api-provider-metal3"
	bareMetalModule  = "github.com/metal3-io/baremetal-operator"
	serviceModule    = "github.com/openshift/assisted-service"
)

// Components whose versions the caller does not choose.
var (
	Etcd      = Component{tools: "etcd", module: "go.etcd.io/etcd/server/v3", binary: "etcd", pkg: ".", prebuilt: true, cost: 40}
	APIServer = Component{
		tools: "kubernetes", module: kubernetesModule, binary: "kube-apiserver",
		pkg: "k8s.io/kubernetes/cmd/kube-apiserver", versioned: true, prebuilt: true, cost: 290, family: kubernetesFamily,
	}
	Controllers = Component{
		tools: "kubernetes", module: kubernetesModule, binary: "kube-controllers", pkg: ".",
		cost: 10, family: kubernetesFamily,
	}
	Metal3    = Component{tools: "capm3", module: metal3Module, binary: "capm3", pkg: metal3Module, cost: 145, family: metal3Family}
	BareMetal = Component{
		tools: "baremetal-operator", module: bareMetalModule, binary: "baremetal-operator",
		pkg: ".", manifests: "config", cost: 40, family: metal3Family,
	}
	Kubectl = Component{
		tools: "kubectl", module: kubernetesModule, binary: "kubectl",
		pkg: "k8s.io/kubernetes/cmd/kubectl", versioned: true, cost: 40, family: kubernetesFamily,
	}
	Clusterctl = Component{
		tools: "clusterctl", module: coreModule, binary: "clusterctl",
		pkg: coreModule + "/cmd/clusterctl", cost: 16, family: kubernetesFamily,
	}
	Helm = Component{
		tools: "helm", module: "helm.sh/helm/v3", binary: "helm", pkg: "helm.sh/helm/v3/cmd/helm", cost: 25, family: kubernetesFamily,
	}
	AssistedService = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service", pkg: serviceModule + "/cmd",
		// No flag disables the metrics server on port 8080, which two environments cannot share.
		variables: map[string]string{"sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress": "0"},
		cost:      235, family: serviceFamily,
	}
	AssistedAdmission = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service-webadmission", pkg: serviceModule + "/cmd/webadmission",
		cost: 50, family: serviceFamily,
	}

	// StateMetrics is kube-state-metrics, for the metrics of a lab.
	StateMetrics = Component{
		tools: "kube-state-metrics", module: "k8s.io/kube-state-metrics/v2", binary: "kube-state-metrics",
		pkg: "k8s.io/kube-state-metrics/v2", cost: 40, family: metal3Family,
	}

	controllerGen = Component{
		tools: "manifests", module: "sigs.k8s.io/controller-tools", binary: "controller-gen",
		pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen", cost: 20, family: kubernetesFamily,
	}
	kustomize = Component{
		tools: "manifests", module: "sigs.k8s.io/kustomize/kustomize/v5", binary: "kustomize",
		pkg: "sigs.k8s.io/kustomize/kustomize/v5", cost: 14,
	}
)

// Core returns Cluster API core in the version of a folder of test/tools; empty means [DefaultCoreTools]. Its
// package differs between versions.
func Core(tools string) Component {
	tools = cmp.Or(tools, DefaultCoreTools)
	family := ""
	if tools == DefaultCoreTools {
		family = kubernetesFamily
	}
	return Component{tools: tools, module: coreModule, binary: "cluster-api", cost: 60, family: family}
}

// Base returns the components of every management cluster, and the tools that render its manifests.
func Base() []Component {
	return []Component{kustomize, controllerGen, Etcd, APIServer, Controllers}
}

// Demo returns the components of the demo, including the demo itself.
func Demo() []Component {
	return append(Base(), demo, Core(""), Metal3, own("bootstrap", 18), own("controlplane", 13))
}

var demo = Component{binary: "demo", own: "test", pkg: "./demo", cost: 90, family: kubernetesFamily}

// Floor returns the program that shows what a manager costs at least.
func Floor() Component {
	return Component{binary: "floor", own: "test", pkg: "./measure/floor", cost: 60, family: kubernetesFamily}
}

// Plugin is the kubectl plugin of this repository.
var Plugin = Component{
	binary: "kubectl-openshift_agent", own: filepath.Join("cmd", "kubectl-openshift_agent"), pkg: ".", cost: 25, family: kubernetesFamily,
}

// own returns a manager of this repository.
func own(name string, cost int) Component {
	return Component{binary: name, pkg: "./" + name, cost: cost, family: kubernetesFamily}
}

// All returns all components that tests may start; coreTools as for [Core].
func All(coreTools string) []Component {
	return append(Base(), Core(coreTools), Metal3, BareMetal, Clusterctl, Kubectl, Helm, Plugin, AssistedService, AssistedAdmission)
}
