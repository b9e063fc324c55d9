// Package clusterversion reads the facts that an upgrade of a workload cluster depends on, and requests
// releases.
package clusterversion

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// versionName is the name of the one ClusterVersion of a cluster.
	versionName = "version"
	// fieldOwner owns the fields that this provider requests.
	fieldOwner = client.FieldOwner("cluster-api-provider-openshift-agent")
)

// The first ConfigMap has the checks that a release requests from an administrator, the second the
// acknowledged ones (cluster version operator).
var (
	gatesKey           = client.ObjectKey{Namespace: "openshift-config-managed", Name: "admin-gates"}
	acknowledgementKey = client.ObjectKey{Namespace: "openshift-config", Name: "admin-acks"}
)

// Clusters connects to workload clusters.
type Clusters interface {
	Connect(ctx context.Context, key client.ObjectKey, requests func(context.Context, *conn.Conn) error) error
}

// Versions reads and writes the ClusterVersions of workload clusters.
type Versions struct{ clusters Clusters }

// New returns Versions for clusters.
func New(clusters Clusters) *Versions { return &Versions{clusters} }

// Observe reads the facts that an upgrade of a cluster depends on.
func (v *Versions) Observe(ctx context.Context, key client.ObjectKey) (workload.ClusterVersion, error) {
	seen := workload.ClusterVersion{}
	err := v.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		for _, read := range []func(context.Context, client.Client, *workload.ClusterVersion) error{
			readVersion, readGates, readOperators,
			readPools,
		} {
			if err := read(ctx, conn.Client, &seen); err != nil {
				return err
			}
		}
		return nil
	})
	return seen, err
}

func readVersion(ctx context.Context, c client.Client, seen *workload.ClusterVersion) error {
	version := &configv1.ClusterVersion{}
	if err := c.Get(ctx, client.ObjectKey{Name: versionName}, version); err != nil {
		return fmt.Errorf("cannot read ClusterVersion %s of the workload cluster: %w", versionName, err)
	}
	seen.ResourceVersion, seen.Channel, seen.Requested = version.ResourceVersion, version.Spec.Channel, objects.RequestedUpdate(version)
	seen.Runs, seen.Upgrading, seen.Former = objects.ReleasesOf(version)
	seen.Ours = isOurRequest(version.ManagedFields)
	for _, entry := range version.Status.History {
		seen.Images = append(seen.Images, entry.Image)
	}
	for _, r := range version.Status.AvailableUpdates {
		seen.Offers = append(seen.Offers, workload.Offer{Version: r.Version, Image: r.Image})
	}
	for i := range version.Status.ConditionalUpdates {
		seen.Offers = append(seen.Offers, offerOf(&version.Status.ConditionalUpdates[i]))
	}
	for _, c := range version.Status.Conditions {
		if c.Type == configv1.RetrievedUpdates && c.Status == configv1.ConditionFalse {
			seen.NoOffers = cmp.Or(c.Message, c.Reason, "RetrievedUpdates is False")
		}
	}
	return nil
}

// isOurRequest reports whether the requested release was written by this provider. Another client that
// changes the field takes over its ownership.
func isOurRequest(written []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(written, func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Manager != string(fieldOwner) || entry.FieldsV1 == nil {
			return false
		}
		fields := struct {
			Spec struct {
				Update map[string]any `json:"f:desiredUpdate"`
			} `json:"f:spec"`
		}{}
		err := json.Unmarshal(entry.FieldsV1.Raw, &fields)
		_, ours := fields.Spec.Update["f:version"]
		return err == nil && ours
	})
}

// offerOf returns an offer without risks if the cluster found that none applies. Such a release is also an
// available update.
func offerOf(u *configv1.ConditionalUpdate) workload.Offer {
	offer := workload.Offer{Version: u.Release.Version, Image: u.Release.Image}
	for _, c := range u.Conditions {
		if c.Type == "Recommended" && c.Status == "True" {
			return offer
		}
	}
	for _, r := range u.Risks {
		offer.Risks = append(offer.Risks, workload.Risk{Name: r.Name, Message: r.Message})
	}
	return offer
}

func readGates(ctx context.Context, c client.Client, seen *workload.ClusterVersion) error {
	gates, err := kube.Read(ctx, c, gatesKey, &corev1.ConfigMap{})
	if err != nil || gates == nil {
		return err
	}
	acknowledged, err := kube.Read(ctx, c, acknowledgementKey, &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(gates.Data)) {
		gate := workload.Gate{Name: name, Message: gates.Data[name]}
		gate.Acknowledged = acknowledged != nil && acknowledged.Data[name] == "true"
		seen.Gates = append(seen.Gates, gate)
	}
	return nil
}

func readOperators(ctx context.Context, c client.Client, seen *workload.ClusterVersion) error {
	operators := &configv1.ClusterOperatorList{}
	if err := c.List(ctx, operators); err != nil {
		return fmt.Errorf("cannot list the ClusterOperators of the workload cluster: %w", err)
	}
	for i := range operators.Items {
		for _, condition := range operators.Items[i].Status.Conditions {
			switch {
			case condition.Type == configv1.OperatorAvailable && condition.Status == configv1.ConditionFalse:
				seen.Unhealthy = append(seen.Unhealthy, newAilment(operators.Items[i].Name, "is not available"))
			case condition.Type == configv1.OperatorDegraded && condition.Status == configv1.ConditionTrue:
				seen.Unhealthy = append(seen.Unhealthy, newAilment(operators.Items[i].Name, "is degraded"))
			}
		}
	}
	return nil
}

func newAilment(operator, state string) workload.Ailment {
	return workload.Ailment{Operator: operator, Message: fmt.Sprintf("ClusterOperator %s %s", operator, state)}
}

func readPools(ctx context.Context, c client.Client, seen *workload.ClusterVersion) error {
	pools := &machineconfigurationv1.MachineConfigPoolList{}
	if err := c.List(ctx, pools); err != nil {
		return fmt.Errorf("cannot list the MachineConfigPools of the workload cluster: %w", err)
	}
	for i := range pools.Items {
		pool := objects.PoolOf(&pools.Items[i])
		if pool.ControlPlane() && pools.Items[i].Spec.Paused {
			seen.Unhealthy = append(seen.Unhealthy, workload.Ailment{Message: "MachineConfigPool " + pool.Name +
				" is paused, so that no upgrade ends"})
		}
		if pool.Degraded != "" {
			seen.Unhealthy = append(seen.Unhealthy, workload.Ailment{Message: fmt.Sprintf("MachineConfigPool %s is degraded (%s)", pool.Name,
				pool.Degraded)})
		}
	}
	return nil
}

// RequestUpdate writes a request into a cluster. It returns a conflict if the ClusterVersion changed since it
// was read.
func (v *Versions) RequestUpdate(ctx context.Context, key client.ObjectKey, request workload.UpdateRequest) error {
	return v.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		if len(request.Acknowledge) > 0 {
			if err := acknowledge(ctx, conn.Client, request.Acknowledge); err != nil {
				return err
			}
		}
		return writeRequest(ctx, conn.Client, request)
	})
}

// writeRequest writes channel and release, and no field of other clients.
func writeRequest(ctx context.Context, c client.Client, request workload.UpdateRequest) error {
	spec := map[string]any{}
	if request.Channel != "" {
		spec["channel"] = request.Channel
	}
	if u := request.Update; u != nil { // removes the fields of the former request
		spec["desiredUpdate"] = map[string]any{"version": u.Version, "image": u.Image, "force": u.Force, "architecture": nil}
	} else if request.Withdraw {
		spec["desiredUpdate"] = nil
	}
	if len(spec) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": request.ResourceVersion}, "spec": spec})
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	version := &configv1.ClusterVersion{}
	version.Name = versionName
	if err := c.Patch(ctx, version, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("cannot write ClusterVersion %s of the workload cluster: %w", versionName, err)
	}
	return nil
}

// acknowledge records that an administrator has made the checks of a release.
func acknowledge(ctx context.Context, c client.Client, names []string) error {
	acknowledged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: acknowledgementKey.Namespace, Name: acknowledgementKey.Name}}
	_, err := controllerutil.CreateOrPatch(ctx, c, acknowledged, func() error {
		if acknowledged.Data == nil {
			acknowledged.Data = map[string]string{}
		}
		for _, name := range names {
			acknowledged.Data[name] = "true"
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot write ConfigMap %s of the workload cluster: %w", acknowledgementKey, err)
	}
	return nil
}
