package plainmetal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	plainmetalv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/plainmetal/api/v1beta1"
)

const (
	// ProviderIDPrefix comes before the UUID of a server in its providerID.
	ProviderIDPrefix = "plainmetal://"

	finalizer = "plainmetalmachine.infrastructure.cluster.x-k8s.io"
	// serverRetry is the interval at which a Machine searches for a free server.
	serverRetry = time.Second
)

// machines gives servers to Machines. What decides about a server is read from the API server itself, and one worker decides.
type machines struct {
	client  client.Client
	reader  client.Reader
	servers []*hosts.Host
}

// Reconcile implements reconcile.Reconciler.
func (r *machines) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reterr error) {
	infra := &plainmetalv1.PlainMetalMachine{}
	if err := r.reader.Get(ctx, req.NamespacedName, infra); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	machine, err := util.GetOwnerMachine(ctx, r.client, infra.ObjectMeta)
	if err != nil || machine == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := util.GetClusterByName(ctx, r.client, machine.Namespace, machine.Spec.ClusterName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isPaused, again, err := paused.EnsurePausedCondition(ctx, r.client, cluster, infra); err != nil || isPaused || again {
		return ctrl.Result{}, err
	}
	helper, err := patch.NewHelper(infra, r.client)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot patch %s: %w", infra.Name, err)
	}
	defer func() { reterr = errors.Join(reterr, helper.Patch(ctx, infra)) }()
	if !infra.DeletionTimestamp.IsZero() {
		r.release(infra)
		return ctrl.Result{}, nil
	}
	return r.provide(ctx, infra, machine, cluster)
}

// provide reserves a server for a Machine. It boots the server after the object has recorded it.
func (r *machines) provide(ctx context.Context, infra *plainmetalv1.PlainMetalMachine, machine *clusterv1.Machine,
	cluster *clusterv1.Cluster,
) (ctrl.Result, error) {
	wait := func(reason, message string) (ctrl.Result, error) {
		conditions.Set(infra, condition(metav1.ConditionFalse, reason, message))
		return ctrl.Result{}, nil
	}
	switch {
	case ptr.Deref(infra.Status.Initialization.Provisioned, false):
		return ctrl.Result{}, nil
	case !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false):
		return wait("WaitingForClusterInfrastructure", "waiting for the infrastructure of the cluster")
	case machine.Spec.Bootstrap.DataSecretName == nil:
		return wait("WaitingForBootstrapData", "waiting for the bootstrap provider")
	case infra.Spec.ProviderID == "":
		free, err := r.free(ctx)
		if err != nil {
			return ctrl.Result{}, err
		}
		if free == nil {
			_, _ = wait("NoServer", "no server is free")
			return ctrl.Result{RequeueAfter: serverRetry}, nil
		}
		controllerutil.AddFinalizer(infra, finalizer)
		infra.Spec.ProviderID = providerID(free)
		return wait("Booting", "the server is about to boot") // after this is written
	}
	server := r.server(infra)
	if server == nil {
		return wait("ServerMissing", "the server does not exist any more")
	}
	userData := &corev1.Secret{}
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: infra.Namespace, Name: *machine.Spec.Bootstrap.DataSecretName},
		userData); err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot read the bootstrap data: %w", err)
	}
	server.BootDiskImage(infra.Spec.Image, userData.Data["value"])
	infra.Status.Initialization.Provisioned = ptr.To(true)
	infra.Status.Addresses = addresses(server.Hardware())
	conditions.Set(infra, condition(metav1.ConditionTrue, "Booted", ""))
	return ctrl.Result{}, nil
}

// release wipes the server of a Machine. The server is free once the object is deleted.
func (r *machines) release(infra *plainmetalv1.PlainMetalMachine) {
	if server := r.server(infra); server != nil {
		server.Wipe()
	}
	controllerutil.RemoveFinalizer(infra, finalizer)
}

// free is the first server that no Machine has; nil: there is none.
func (r *machines) free(ctx context.Context) (*hosts.Host, error) {
	all := &plainmetalv1.PlainMetalMachineList{}
	if err := r.reader.List(ctx, all); err != nil {
		return nil, fmt.Errorf("cannot list the free servers: %w", err)
	}
	for _, server := range r.servers {
		if !slices.ContainsFunc(all.Items, func(m plainmetalv1.PlainMetalMachine) bool { return m.Spec.ProviderID == providerID(server) }) {
			return server, nil
		}
	}
	return nil, nil //nolint:nilnil // none is free
}

// server is the one that a Machine has; nil: none.
func (r *machines) server(infra *plainmetalv1.PlainMetalMachine) *hosts.Host {
	if at := slices.IndexFunc(r.servers, func(s *hosts.Host) bool { return providerID(s) == infra.Spec.ProviderID }); at >= 0 {
		return r.servers[at]
	}
	return nil
}

func providerID(server *hosts.Host) string { return ProviderIDPrefix + server.Hardware().UUID }

func addresses(hardware hosts.Hardware) []clusterv1.MachineAddress {
	list := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: hardware.Hostname}}
	for _, nic := range hardware.NICs {
		for _, address := range nic.Addresses {
			if prefix, err := netip.ParsePrefix(address); err == nil {
				list = append(list, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: prefix.Addr().String()})
			}
		}
	}
	return list
}
