// Package reader reads the objects of clusters from the management cluster, each object once. It neither writes, nor reads
// Secrets, nor connects to a workload cluster.
package reader

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

const (
	// pageSize is the number of objects of one request. An Agent takes about 50 KiB.
	pageSize = 200
	// maxObjects is the largest number of objects of a kind that is read.
	maxObjects = 20_000
	// timeout is the time for all requests of a snapshot.
	timeout = time.Minute
)

var errTooMany = fmt.Errorf("more than %d objects exist. Name a namespace", maxObjects)

// Scope selects the clusters that are read.
type Scope struct {
	// Namespace is the namespace of the clusters. If it is empty, all namespaces are read.
	Namespace string
	// Cluster is the name of the Cluster. If it is empty, all Clusters are read.
	Cluster string
	// Hosts is true if BareMetalHosts and Agents are read as well. They are large, and no cause depends on them.
	Hosts bool
}

// NewScheme returns the kinds that are read. Secrets are not among them.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, aiv1beta1.AddToScheme, metal3.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the kinds: %w", err)
		}
	}
	return scheme, nil
}

// NewClient returns a client of a management cluster for the kinds that are read. Without a mapper it discovers the kinds.
func NewClient(config *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the management cluster: %w", err)
	}
	return api, nil
}

// Read reads the clusters of a scope. It returns an error if the Clusters cannot be read. Any other kind that cannot be
// read is listed in NotReadable.
func Read(ctx context.Context, api client.Reader, scope Scope, now time.Time) (*snapshot.Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the management cluster did not answer within %s", timeout))
	defer cancel()
	r := reading{api: api, scope: scope, snapshot: &snapshot.Snapshot{Time: metav1.NewTime(now)}}
	if err := r.readClusters(ctx); err != nil {
		return nil, err
	}
	r.note(snapshot.KindControlPlane, r.readControlPlanes(ctx))
	r.note(snapshot.KindMachine, r.readMachines(ctx))
	r.note(snapshot.KindConfig, r.readConfigs(ctx))
	if scope.Hosts {
		r.note(snapshot.KindHost, r.readHosts(ctx))
		r.note(snapshot.KindAgent, r.readAgents(ctx))
	}
	return r.snapshot, nil
}

// ClusterOf returns the name of the Cluster of a Machine.
func ClusterOf(ctx context.Context, api client.Reader, machine types.NamespacedName) (string, error) {
	m := &clusterv1.Machine{}
	if err := api.Get(ctx, machine, m); err != nil {
		return "", fmt.Errorf("cannot read Machine %s: %w", machine, err)
	}
	return m.Spec.ClusterName, nil
}

// reading is the reading of a scope.
type reading struct {
	api      client.Reader
	scope    Scope
	snapshot *snapshot.Snapshot
}

// note records why a kind could not be read.
func (r *reading) note(kind string, err error) {
	if err == nil {
		return
	}
	if r.snapshot.NotReadable == nil {
		r.snapshot.NotReadable = map[string]string{}
	}
	r.snapshot.NotReadable[kind] = causeOf(err)
}

// causeOf returns why a kind could not be read, without the request.
func causeOf(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return snapshot.NoPermission
	case meta.IsNoMatchError(err):
		return snapshot.NoKind
	}
	return assisted.RedactURLs(err.Error())
}

// IsAbsent reports whether an object does not exist. A proxy, or an API server that does not serve the kind, answers 404 as
// well. Such an answer does not show that the object was deleted.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func (r *reading) readClusters(ctx context.Context) (err error) {
	s := r.snapshot
	if r.scope.Cluster == "" {
		s.Clusters, err = list(ctx, r, func(l *clusterv1.ClusterList) []clusterv1.Cluster { return l.Items }, snapshot.IsOurs)
		if err != nil {
			return fmt.Errorf("cannot list the Clusters: %w", err)
		}
		return nil
	}
	key, cluster := types.NamespacedName{Namespace: r.scope.Namespace, Name: r.scope.Cluster}, clusterv1.Cluster{}
	if err := r.api.Get(ctx, key, &cluster); err != nil {
		return fmt.Errorf("cannot read Cluster %s: %w", key, err)
	}
	if kind := cluster.Spec.ControlPlaneRef.Kind; kind != "" && !snapshot.IsOurs(&cluster) {
		return fmt.Errorf("the control plane of Cluster %s is a %s. Only clusters with an %s are supported", key, kind, snapshot.KindControlPlane)
	}
	s.Clusters = []clusterv1.Cluster{cluster}
	return nil
}

// readControlPlanes reads the control plane of a named Cluster by its name, because a new control plane has no label of
// its Cluster.
func (r *reading) readControlPlanes(ctx context.Context) (err error) {
	s := r.snapshot
	if r.scope.Cluster == "" {
		type items = []controlplanev1.OpenshiftAssistedControlPlane
		s.ControlPlanes, err = list(ctx, r, func(l *controlplanev1.OpenshiftAssistedControlPlaneList) items { return l.Items }, all)
		return err
	}
	name, controlPlane := s.Clusters[0].Spec.ControlPlaneRef.Name, controlplanev1.OpenshiftAssistedControlPlane{}
	if name == "" {
		return nil
	}
	err = r.api.Get(ctx, types.NamespacedName{Namespace: r.scope.Namespace, Name: name}, &controlPlane)
	if err == nil {
		s.ControlPlanes = append(s.ControlPlanes, controlPlane)
	}
	if IsAbsent(err) {
		return nil
	}
	return err
}

func (r *reading) readMachines(ctx context.Context) (err error) {
	r.snapshot.Machines, err = list(ctx, r, func(l *clusterv1.MachineList) []clusterv1.Machine { return l.Items }, all, r.ofCluster()...)
	return err
}

func (r *reading) readConfigs(ctx context.Context) (err error) {
	r.snapshot.Configs, err = list(ctx, r, func(l *bootstrapv1.OpenshiftAssistedConfigList) []bootstrapv1.OpenshiftAssistedConfig {
		return l.Items
	}, all, r.ofCluster()...)
	return err
}

// readHosts keeps the BareMetalHosts of the Machines.
func (r *reading) readHosts(ctx context.Context) (err error) {
	wanted := sets.New[string]()
	for i := range r.snapshot.Machines {
		wanted.Insert(r.snapshot.Machines[i].Spec.InfrastructureRef.Name)
	}
	r.snapshot.Hosts, err = list(ctx, r, func(l *metal3.HostList) []metal3.Host { return l.Items }, func(h *metal3.Host) bool {
		return wanted.Has(metal3.ConsumerOf(h).Name)
	})
	return err
}

// readAgents keeps the Agents of the hosts.
func (r *reading) readAgents(ctx context.Context) (err error) {
	wanted := sets.New[string]()
	for i := range r.snapshot.Configs {
		if ref := r.snapshot.Configs[i].Status.AgentRef; ref != nil {
			wanted.Insert(ref.Name)
		}
	}
	if wanted.Len() == 0 {
		return nil
	}
	r.snapshot.Agents, err = list(ctx, r, func(l *aiv1beta1.AgentList) []aiv1beta1.Agent { return l.Items }, func(a *aiv1beta1.Agent) bool {
		return wanted.Has(a.Name)
	})
	return err
}

func (r *reading) ofCluster() []client.ListOption {
	if r.scope.Cluster == "" {
		return nil
	}
	return []client.ListOption{client.MatchingLabels{clusterv1.ClusterNameLabel: r.scope.Cluster}}
}

func all[T any](*T) bool { return true }

// list reads a kind page by page, and returns the objects that keep selects. It drops the managed fields, which nothing
// shows.
func list[L, T any, PL interface {
	*L
	client.ObjectList
}, P interface {
	*T
	client.Object
}](ctx context.Context, r *reading, items func(*L) []T, keep func(*T) bool, options ...client.ListOption) ([]T, error) {
	return pages[L, T, PL, P](ctx, r, func() PL { return new(L) }, items, keep, options...)
}

// pages is list for a kind whose empty page is not the zero value.
func pages[L, T any, PL interface {
	*L
	client.ObjectList
}, P interface {
	*T
	client.Object
}](ctx context.Context, r *reading, empty func() PL, items func(*L) []T, keep func(*T) bool, options ...client.ListOption) ([]T, error) {
	var kept []T
	next := ""
	for read := 0; ; {
		page := empty()
		paged := append([]client.ListOption{client.InNamespace(r.scope.Namespace), client.Limit(pageSize), client.Continue(next)}, options...)
		if err := r.api.List(ctx, page, paged...); err != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		found := items(page)
		for i := range found {
			if keep(&found[i]) {
				P(&found[i]).SetManagedFields(nil)
				kept = append(kept, found[i])
			}
		}
		read += len(found)
		if next = page.GetContinue(); next == "" {
			return kept, nil
		}
		if read >= maxObjects {
			return nil, errTooMany
		}
	}
}

// Names returns the names of the Clusters in a namespace.
func Names(ctx context.Context, api client.Reader, namespace string) ([]string, error) {
	r := &reading{api: api, scope: Scope{Namespace: namespace}}
	clusters, err := list(ctx, r, func(l *clusterv1.ClusterList) []clusterv1.Cluster { return l.Items }, snapshot.IsOurs)
	if err != nil {
		return nil, fmt.Errorf("cannot list the Clusters: %w", err)
	}
	names := make([]string, 0, len(clusters))
	for i := range clusters {
		names = append(names, clusters[i].Name)
	}
	return names, nil
}
