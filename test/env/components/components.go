package components

import "cmp"

// DefaultCoreTools is the folder below test/tools with the version of Cluster API core that runs if none is asked for.
const DefaultCoreTools = "cluster-api"

// Component is a program that is built from a module of its own below test/tools.
type Component struct {
	// tools is the folder below test/tools; empty: the program is one of this repository's own modules, whose go command
	// decides whether there is anything to do.
	tools string
	// own is the folder of that module below the top of the repository; empty: the module of the product.
	own string
	// module is what is built, and whose version names the result.
	module string
	// binary is the name of the program, pkg the package it is built from; empty: the tool that the folder's go.mod names.
	binary, pkg string
	// manifests is the folder of the module with those of a manager; empty: config/default beside its package.
	manifests string
	// versioned programs are told their version by the linker, as Kubernetes' own build does.
	versioned bool
	// variables are string variables of the program that the linker sets, by their full names.
	variables map[string]string
	// prebuilt programs may come from elsewhere: see [Assets].
	prebuilt bool
	// cost is how many seconds of a processor it takes to build from empty caches, after what stands before it in its family: see [lanes].
	cost int
	// family names the components that have most of their packages in common, at the same versions.
	family string
}

// The families are named after the version of Kubernetes' libraries that they have in common, if they do.
const (
	ourFamily        = "k8s.io 0.34" // that of the managers of this repository, too
	metal3Family     = "k8s.io 0.35"
	kubernetesFamily = "k8s.io 0.36"
	serviceFamily    = "k8s.io 0.29"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	coreModule       = "sigs.k8s.io/cluster-api"
	metal3Module     = "github.com/metal3-io/cluster-api-provider-metal3"
	bareMetalModule  = "github.com/metal3-io/baremetal-operator"
	serviceModule    = "github.com/openshift/assisted-service"
)

// The components whose versions are not chosen by whoever starts them.
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
		pkg: coreModule + "/cmd/clusterctl", cost: 16, family: ourFamily,
	}
	Helm            = Component{tools: "helm", module: "helm.sh/helm/v3", binary: "helm", pkg: "helm.sh/helm/v3/cmd/helm", cost: 100}
	AssistedService = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service", pkg: serviceModule + "/cmd",
		// No flag turns off the metrics server on port 8080, which two environments cannot share.
		variables: map[string]string{"sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress": "0"},
		cost:      235, family: serviceFamily,
	}
	AssistedAdmission = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service-webadmission", pkg: serviceModule + "/cmd/webadmission",
		cost: 50, family: serviceFamily,
	}

	// StateMetrics is for whoever looks at the metrics of a laboratory.
	StateMetrics = Component{
		tools: "kube-state-metrics", module: "k8s.io/kube-state-metrics/v2", binary: "kube-state-metrics",
		pkg: "k8s.io/kube-state-metrics/v2", cost: 60,
	}

	controllerGen = Component{
		tools: "manifests", module: "sigs.k8s.io/controller-tools", binary: "controller-gen",
		pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen", cost: 20,
	}
	kustomize = Component{
		tools: "manifests", module: "sigs.k8s.io/kustomize/kustomize/v5", binary: "kustomize",
		pkg: "sigs.k8s.io/kustomize/kustomize/v5", cost: 14,
	}
)

// Core is Cluster API core in the version that a folder below test/tools requires; empty: [DefaultCoreTools]. Its
// package is not the same in all versions.
func Core(tools string) Component {
	return Component{tools: cmp.Or(tools, DefaultCoreTools), module: coreModule, binary: "cluster-api", cost: 50, family: ourFamily}
}

// Base is what every management cluster consists of, and the tools that render its manifests.
func Base() []Component {
	return []Component{kustomize, controllerGen, Etcd, APIServer, Controllers}
}

// Demo is what the demo consists of, itself included.
func Demo() []Component {
	return append(Base(), demo, Core(""), Metal3, own("bootstrap", 18), own("controlplane", 13))
}

// demo comes first in its family, with the packages that the others of it have in common.
var demo = Component{binary: "demo", own: "test", pkg: "./demo", cost: 205, family: ourFamily}

// own is one of this repository's own managers.
func own(name string, cost int) Component {
	return Component{binary: name, pkg: "./" + name, cost: cost, family: ourFamily}
}

// All is everything that tests may start; coreTools as for [Core].
func All(coreTools string) []Component {
	return append(Base(), Core(coreTools), Metal3, BareMetal, Clusterctl, Kubectl, Helm, AssistedService, AssistedAdmission)
}
