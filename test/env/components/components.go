package components

import "cmp"

// DefaultCoreTools is the folder below test/tools with the version of Cluster API core that runs if none is asked for.
const DefaultCoreTools = "cluster-api"

// Component is a program that is built from a module of its own below test/tools.
type Component struct {
	// tools is the folder below test/tools.
	tools string
	// module is what is built, and whose version names the result.
	module string
	// binary is the name of the program, pkg the package it is built from; empty: the tool that the folder's go.mod names.
	binary, pkg string
	// versioned programs are told their version by the linker, as Kubernetes' own build does.
	versioned bool
	// variables are string variables of the program that the linker sets, by their full names.
	variables map[string]string
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	coreModule       = "sigs.k8s.io/cluster-api"
	metal3Module     = "github.com/metal3-io/cluster-api-provider-metal3"
	serviceModule    = "github.com/openshift/assisted-service"
)

// The components whose versions are not chosen by whoever starts them.
var (
	Etcd              = Component{tools: "etcd", module: "go.etcd.io/etcd/server/v3", binary: "etcd", pkg: "."}
	APIServer         = Component{tools: "kubernetes", module: kubernetesModule, binary: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", versioned: true}
	ControllerManager = Component{tools: "kubernetes", module: kubernetesModule, binary: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", versioned: true}
	Metal3            = Component{tools: "capm3", module: metal3Module, binary: "capm3", pkg: metal3Module}
	Clusterctl        = Component{tools: "clusterctl", module: coreModule, binary: "clusterctl", pkg: coreModule + "/cmd/clusterctl"}
	AssistedService   = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service", pkg: serviceModule + "/cmd",
		// No flag turns off the metrics server on port 8080, which two environments cannot share.
		variables: map[string]string{"sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress": "0"},
	}
	AssistedAdmission = Component{
		tools: "assisted-service", module: serviceModule, binary: "assisted-service-webadmission", pkg: serviceModule + "/cmd/webadmission",
	}

	controllerGen = Component{tools: "manifests", module: "sigs.k8s.io/controller-tools", binary: "controller-gen", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"}
	kustomize     = Component{tools: "manifests", module: "sigs.k8s.io/kustomize/kustomize/v5", binary: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5"}
)

// Core is Cluster API core in the version that a folder below test/tools requires; empty: [DefaultCoreTools]. Its package is not the same in all versions.
func Core(tools string) Component {
	return Component{tools: cmp.Or(tools, DefaultCoreTools), module: coreModule, binary: "cluster-api"}
}

// Base is what every management cluster consists of, and the tools that render its manifests.
func Base() []Component {
	return []Component{kustomize, controllerGen, Etcd, APIServer, ControllerManager}
}

// All is everything that tests may start; coreTools as for [Core].
func All(coreTools string) []Component {
	return append(Base(), Core(coreTools), Metal3, Clusterctl, AssistedService, AssistedAdmission)
}
