package conformance

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Provider describes the tested providers: a bootstrap provider and its control plane provider.
type Provider struct {
	// Bootstrap and ControlPlane are the two providers.
	Bootstrap, ControlPlane Component
	// Metadata is the content of metadata.yaml.
	Metadata []byte
	// Kinds are additional kinds of objects that the providers create in the namespace of a cluster.
	Kinds []schema.GroupVersionKind
	// Registration is the kind (one of Kinds) whose deletion makes the installing service forget the cluster. It
	// must be deleted last, and never in a move. Empty: no such kind exists.
	Registration schema.GroupVersionKind
	// Installed is the condition of the control plane that is True once the cluster is installed, even if it
	// cannot be reached then.
	Installed string
	// Release writes a release into a folder in the layout of local repositories of clusterctl:
	// <type>-<name>/<version> for each provider, with all files of a release.
	Release func(ctx context.Context, version, dir string) error
	// Before returns the CRDs of the former release; none if no former release is known. Nil: none exists.
	Before func(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error)
	// Accepted are parts of messages about incompatible changes of CRDs that were decided on.
	Accepted []string
	// Templates are cluster templates for clusterctl, by name, and Variables are their variables that clusterctl
	// does not set.
	Templates map[string][]byte
	Variables map[string]string
	// OwnerGraph is the expected owner graph of an installed cluster of the sample Full, in the form of the
	// function [OwnerGraph]. Empty: each object of Cluster API must have a chain of owners to its Cluster, and the
	// graph is printed.
	OwnerGraph string
	// NextVersion returns a version of Kubernetes to which clusters with the given version can be upgraded. Nil: the
	// next patch.
	NextVersion func(version string) (string, error)
	// RequestVersion sets the variables of a Cluster with a topology that a user sets together with
	// spec.topology.version, to request a version of Kubernetes. Nil: none.
	RequestVersion func(cluster *clusterv1.Cluster, version string) error
	// InfraMachine is the kind of the infra machines in the samples, which control plane providers create from
	// their templates. Empty: infra machines are not counted.
	InfraMachine schema.GroupVersionKind
	// TaintsTaken is true if Cluster API core accepts Machines with taints on the hub of Start: behind its
	// feature gate MachineTaintPropagation.
	TaintsTaken bool
	// Long enables the rules that take too long for every change.
	Long bool
	// OfHosts reports whether an object in the namespace of a cluster belongs to one of its hosts, though it has
	// an owner. Such an object stays when the cluster is deleted. Nil: no such objects exist.
	OfHosts func(ctx context.Context, hub Hub, o *unstructured.Unstructured) (bool, error)
	// DeletionOverride are annotations with which a user can delete an object in use, although an admission
	// policy of the provider refuses that.
	DeletionOverride map[string]string
	// Samples are the samples that the hub has. Rules that need another sample do not apply.
	Samples []Sample
	// InstallTimeout is the longest duration of an installation. Zero: ten minutes.
	InstallTimeout time.Duration
	// Exempt are the ids of rules that do not apply, with the reason. P22 stands for all rules on clusters from a
	// ClusterClass, and C18 for all rules on moves.
	Exempt map[string]string
	// Report is the path of the report. Clusterctl is the path of the program; empty: its rules do not apply.
	Report, Clusterctl string
	// Start starts a management cluster with Cluster API core, an infrastructure provider and both providers.
	Start func(ctx context.Context, options HubOptions) (Hub, error)
	// RestoreMoved does, in a namespace of a hub, what controllers other than Cluster API do when a cluster is
	// moved there, until ctx ends. Nil: no such controllers exist.
	RestoreMoved func(ctx context.Context, hub Hub, namespace string) error
}

// Component is one provider.
type Component struct {
	// Name is the name of the provider for clusterctl, without its type.
	Name string
	// Manifests renders the manifests that clusterctl installs, with their variables.
	Manifests func(ctx context.Context) ([]byte, error)
	// Kind is the kind that Machines or Clusters refer to, Template its template.
	Kind, Template schema.GroupVersionKind
	// Example is the smallest spec of Kind that the API server accepts.
	Example map[string]any
	// Change is a field of the spec of Kind, unset in the samples, that may be changed at any time, with another value.
	Change map[string]any
}

// HubOptions are the options of a management cluster.
type HubOptions struct {
	// Namespace and WatchFilter restrict both providers, as their flags --namespace and --watch-filter do.
	Namespace, WatchFilter string
	// Bare is true for the target hub of a move: it has no hosts, and nothing that installs them.
	Bare bool
}

// Hub is a management cluster. A method of a Hub or a Cluster returns an error that wraps [errors.ErrUnsupported]
// for an operation that it does not have. A rule that needs the operation does not apply then.
type Hub interface {
	// Config and Kubeconfig give access as an administrator.
	Config() *rest.Config
	Kubeconfig() string
	// Apply applies a sample as a user does.
	Apply(ctx context.Context, options ClusterOptions) (Cluster, error)
	// Crash makes both managers crash after each of their writes that changes an object in the namespace, and
	// restart, until stop is called. stop returns the number of crashes. A nil stop: this hub cannot crash
	// managers.
	Crash(namespace string) (stop func() int)
	// Writes counts, by kind, the writes that both managers have requested in a namespace since a point in time.
	// Writes without a change count as well.
	Writes(namespace string, since time.Time) (map[string]int, error)
	// Panics returns the number of reconciles that panicked so far.
	Panics(ctx context.Context) (int, error)
	// Stop ends everything.
	Stop()
}

// Sample is a kind of cluster.
type Sample string

// The samples of a [Hub].
const (
	// Small is the smallest cluster: no workers, and one control-plane Machine if the provider supports that.
	Small Sample = "small"
	// Full has several control-plane Machines, and workers by a MachineDeployment.
	Full Sample = "full"
	// Topology is created from a ClusterClass, with workers.
	Topology Sample = "topology"
)

// ClusterOptions are the options of a cluster.
type ClusterOptions struct {
	Sample    Sample
	Namespace string
	// Name is the name of the Cluster. Empty: that of the sample.
	Name string
	// Edit changes an object before it is applied; it is called for all objects, also those that are left out.
	Edit func(*unstructured.Unstructured)
	// Without leaves objects out; Cluster.ApplyRest applies them.
	Without func(*unstructured.Unstructured) bool
	// Hold blocks the end of the installation until Cluster.Release.
	Hold bool
	// Replaceable is true for a cluster whose control-plane Machines are replaced. It has one spare host, and
	// all that the provider inspects before it releases a host.
	Replaceable bool
	// NoHosts is true for a cluster that is never installed.
	NoHosts bool
}

// Cluster is a cluster that was applied.
type Cluster interface {
	// Key returns namespace and name of the Cluster.
	Key() types.NamespacedName
	ApplyRest(ctx context.Context) error
	// Release lets a blocked installation end.
	Release()
	// Available waits until the cluster is installed and all its Machines run.
	Available(ctx context.Context) error
	// AgeKubeconfig makes the provider believe that the credentials in the kubeconfig are due to be renewed.
	AgeKubeconfig(ctx context.Context) error
	// RotateKubeconfig gives the cluster another kubeconfig, as happens without the provider.
	RotateKubeconfig(ctx context.Context) error
	// UsersKubeconfig returns the kubeconfig that is recommended to users.
	UsersKubeconfig(ctx context.Context) ([]byte, error)
	// Ignition returns what the bootstrap provider adds to the Ignition config of the host of a Machine.
	Ignition(ctx context.Context, machine string) ([]byte, error)
	// Disturb disturbs the host of a Machine that joined the installed cluster, until settle is called. The
	// bootstrap config has to report the problem.
	Disturb(ctx context.Context, machine string) (settle func(context.Context) error, err error)
	// Upgrade makes a release available to the cluster, and does the steps that the provider leaves to others. version
	// is that of the Cluster's topology, which requests it already.
	Upgrade(ctx context.Context, version string) error
	// Forget releases the hub's resources of a cluster whose objects are deleted.
	Forget()
}

// credentialsMonths is the longest validity of the credentials in a kubeconfig, in months. The control plane
// provider of Cluster API issues them for a year.
const credentialsMonths = 13

// startTimeout includes the first build of all tools, from empty caches.
const startTimeout = 45 * time.Minute

// The timeouts of most waits and observations. Tests with a simulated provider set shorter ones.
var (
	soon           = 3 * time.Minute
	installTimeout = 10 * time.Minute
	deleteTimeout  = 8 * time.Minute
	// idle is how long idle clusters are observed: nothing may be written.
	idle = 2 * time.Minute
	// still is how long objects are observed after a change: nothing more may be written.
	still = 4 * time.Second
	// held is how long objects must not change to count as settled: a provider may defer statuses of little
	// interest for some seconds.
	held = 12 * time.Second
)
