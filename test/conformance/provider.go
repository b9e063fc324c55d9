package conformance

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Provider is what is tested: a bootstrap provider and the control plane provider that goes with it.
type Provider struct {
	// Bootstrap and ControlPlane are the two providers.
	Bootstrap, ControlPlane Component
	// Metadata is the content of metadata.yaml.
	Metadata []byte
	// Kinds are further kinds of which the providers make objects in the namespace of a cluster.
	Kinds []schema.GroupVersionKind
	// Registration is the kind (one of Kinds) whose deletion gives the cluster up to whatever installs it: it must come last,
	// and never in a move. Empty: there is none.
	Registration schema.GroupVersionKind
	// Installed is the condition of the control plane that is True once the cluster is installed, whether or not it can be reached then.
	Installed string
	// Release writes a release into a folder as clusterctl reads local repositories: for each provider
	// <type>-<name>/<version>, with all that a release has for it.
	Release func(ctx context.Context, version, dir string) error
	// Before returns the CRDs of the release before; none: nobody knows one. Nil: there is none.
	Before func(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error)
	// Accepted are parts of what is told of CRDs that break those who use the ones before, where that was decided on.
	Accepted []string
	// Templates are cluster templates for clusterctl, by name, and Variables what they ask for besides what clusterctl sets.
	Templates map[string][]byte
	Variables map[string]string
	// OwnerGraph is the expected owner graph of an installed cluster of the sample Full, as [OwnerGraph] writes it.
	OwnerGraph string
	// KubeletsCompared is true where Cluster API core takes workers for outdated as long as their version is not
	// literally that of their kubelets, as from v1.14 on, and the versions of the provider are others than those of
	// Kubernetes.
	KubeletsCompared bool
	// InfraMachine is the kind of the infra machines in the samples, which control plane providers make from their
	// templates. Empty: they are not counted.
	InfraMachine schema.GroupVersionKind
	// TaintsTaken tells that Cluster API core takes Machines with taints on the hub of Start: behind its feature gate MachineTaintPropagation.
	TaintsTaken bool
	// Long has those rules tested, too, that take too long for every change.
	Long bool
	// OfHosts reports whether an object in the namespace of a cluster is one of its hosts', though it has an owner: it
	// is no part of the cluster, and stays when that goes. Nil: there are none.
	OfHosts func(ctx context.Context, hub Hub, o *unstructured.Unstructured) (bool, error)
	// DeletionOverride are annotations by which a user deletes an object in use although an admission policy of the provider refuses that.
	DeletionOverride map[string]string
	// Exempt names rules that do not apply, with the reason.
	Exempt map[string]string
	// Report is the file that the report is written to. Clusterctl is the program; empty: what needs it does not apply.
	Report, Clusterctl string
	// Start starts a management cluster with Cluster API core, an infrastructure provider and both providers.
	Start func(ctx context.Context, options HubOptions) (Hub, error)
	// RestoreMoved does, in a namespace of a hub, what others than Cluster API do when a cluster is moved there, until ctx
	// ends. Nil: there is nothing to do.
	RestoreMoved func(ctx context.Context, hub Hub, namespace string) error
}

// Component is one provider.
type Component struct {
	// Name is the name of the provider for clusterctl, without its type.
	Name string
	// Manifests renders what clusterctl installs, with its variables.
	Manifests func(ctx context.Context) ([]byte, error)
	// Kind is the kind that Machines or Clusters refer to, Template its template.
	Kind, Template schema.GroupVersionKind
	// Example is the least spec that the API server accepts of Kind.
	Example map[string]any
	// Change is a field of the spec of Kind, unset in the samples, that may be changed at any time, with another value.
	Change map[string]any
}

// HubOptions say how a management cluster is started.
type HubOptions struct {
	// Namespace and WatchFilter restrict both providers, as their flags --namespace and --watch-filter do.
	Namespace, WatchFilter string
	// Bare is true for a hub that is only moved to: no hosts, nothing that installs them.
	Bare bool
}

// Hub is a management cluster.
type Hub interface {
	// Config and Kubeconfig are an administrator's.
	Config() *rest.Config
	Kubeconfig() string
	// Apply applies a sample as a user does.
	Apply(ctx context.Context, options ClusterOptions) (Cluster, error)
	// Crash makes both managers die after each of their writes that changes something in the namespace, and come back, until
	// stop is called; stop tells how often they died. Nil stop: this hub cannot do that.
	Crash(namespace string) (stop func() int)
	// Writes counts, by what they are about, the writes that both managers have asked for in a namespace since a point
	// in time, also those that change nothing.
	Writes(namespace string, since time.Time) (map[string]int, error)
	// Panics is how many reconciles panicked so far.
	Panics(ctx context.Context) (int, error)
	// Stop ends everything.
	Stop()
}

// Sample is a kind of cluster.
type Sample string

// The samples that a [Hub] is asked for.
const (
	// Small is the smallest cluster: one control-plane Machine if the provider can do with that, no workers.
	Small Sample = "small"
	// Full has several control-plane Machines, and workers by a MachineDeployment.
	Full Sample = "full"
	// Topology is made from a ClusterClass, with workers.
	Topology Sample = "topology"
)

// ClusterOptions say which cluster is applied.
type ClusterOptions struct {
	Sample    Sample
	Namespace string
	// Name of the Cluster. Empty: whatever the sample has.
	Name string
	// Edit changes an object before it is applied; it sees all objects, also those that are left out.
	Edit func(*unstructured.Unstructured)
	// Without leaves objects out; Cluster.ApplyRest applies them.
	Without func(*unstructured.Unstructured) bool
	// Hold keeps the installation from ending until Cluster.Release.
	Hold bool
	// Replaceable is for a cluster whose control-plane Machines are replaced: one host is spare, and there is what the
	// provider looks at before it lets a host go.
	Replaceable bool
	// NoHosts is for a cluster that is never installed.
	NoHosts bool
}

// Cluster is one that was applied.
type Cluster interface {
	// Key is namespace and name of the Cluster.
	Key() types.NamespacedName
	ApplyRest(ctx context.Context) error
	// Release lets an installation end that was held.
	Release()
	// Available waits until the cluster is installed and all its Machines run.
	Available(ctx context.Context) error
	// AgeKubeconfig makes the provider believe that the credentials in the kubeconfig are due to be renewed.
	AgeKubeconfig(ctx context.Context) error
	// RotateKubeconfig gives the cluster another kubeconfig, as it would come by itself.
	RotateKubeconfig(ctx context.Context) error
	// UsersKubeconfig is the kubeconfig that people are told to use.
	UsersKubeconfig(ctx context.Context) ([]byte, error)
	// Ignition is what the host of a Machine gets of the bootstrap provider when it is installed.
	Ignition(ctx context.Context, machine string) ([]byte, error)
	// Disturb makes something happen to the host of a Machine that joined the installed cluster, of which its bootstrap
	// config is to tell, until settle is called.
	Disturb(ctx context.Context, machine string) (settle func(context.Context) error, err error)
	// Upgrade lets the cluster be upgraded to a release, given as in the Cluster's topology, which asks for it already:
	// it makes the release available, and does what the provider leaves to others.
	Upgrade(ctx context.Context, version string) error
	// Forget releases what the hub holds for the cluster once its objects are gone.
	Forget()
}

// credentialsMonths is for how long the credentials in a kubeconfig may be valid: those of the control plane provider
// that Cluster API brings live for a year.
const credentialsMonths = 13

// startTimeout includes the first build of all tools, from empty caches.
const startTimeout = 45 * time.Minute

// What is waited for, and watched, most often. A provider that is played is quicker.
var (
	soon           = 3 * time.Minute
	installTimeout = 10 * time.Minute
	deleteTimeout  = 8 * time.Minute
	// idle is for how long an installed world is watched in which nothing may happen.
	idle = 2 * time.Minute
	// still is for how long a world is watched in which something just happened, and nothing more may.
	still = 4 * time.Second
	// held is for how long a world is watched before it counts as settled: statuses of little interest may be held back for some seconds.
	held = 12 * time.Second
)
