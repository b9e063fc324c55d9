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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
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
	if err := readRequester(version, seen); err != nil {
		return fmt.Errorf("cannot read who requested the release of ClusterVersion %s: %w", versionName, err)
	}
	for _, entry := range version.Status.History {
		seen.Images = append(seen.Images, entry.Image)
	}
	readOffers(&version.Status, seen)
	for _, c := range version.Status.Conditions {
		if c.Type == configv1.RetrievedUpdates && c.Status == configv1.ConditionFalse {
			seen.NoOffers = cmp.Or(c.Message, c.Reason, "RetrievedUpdates is False")
		}
	}
	return nil
}

// readRequester reads which fields of the requested release this provider wrote. Another client that changes a field takes
// over its ownership.
func readRequester(version *configv1.ClusterVersion, seen *workload.ClusterVersion) error {
	managers, err := apply.ManagersOf(version.ManagedFields)
	if err != nil {
		return err //nolint:wrapcheck // by the caller
	}
	ours := func(field ...any) bool {
		return managers.Of(append([]any{"spec", "desiredUpdate"}, field...)...).Has(string(fieldOwner))
	}
	seen.Ours = ours("version")
	if version.Spec.DesiredUpdate == nil {
		return nil
	}
	for _, risk := range version.Spec.DesiredUpdate.AcceptRisks {
		seen.AcceptedRisks = append(seen.AcceptedRisks, workload.AcceptedRisk{
			Name: risk.Name, Ours: ours("acceptRisks", fieldpath.KeyByFields("name", risk.Name)),
		})
	}
	return nil
}

// readOffers reads the releases of the update graph. A release whose risks were accepted in the cluster is an available
// update, too. It counts with its risks, because the control plane decides which risks are accepted.
func readOffers(status *configv1.ClusterVersionStatus, seen *workload.ClusterVersion) {
	risky := sets.New[string]()
	var conditional []workload.Offer
	for i := range status.ConditionalUpdates {
		offer := offerOf(&status.ConditionalUpdates[i])
		conditional = append(conditional, offer)
		if len(offer.Risks) > 0 {
			risky.Insert(offer.Image)
		}
		// Only a cluster version operator that reads acceptRisks writes the names. The schema may have both fields although
		// the operator refuses them, with feature set CustomNoUpgrade.
		seen.RecordsRisks = seen.RecordsRisks || len(status.ConditionalUpdates[i].RiskNames) > 0
	}
	for _, r := range status.AvailableUpdates {
		if !risky.Has(r.Image) {
			seen.Offers = append(seen.Offers, workload.Offer{Version: r.Version, Image: r.Image})
		}
	}
	seen.Offers = append(seen.Offers, conditional...)
}

// offerOf returns an offer with the risks that apply to the cluster. If the cluster does not report which risks apply, all
// of them count, unless the cluster recommends the release.
func offerOf(u *configv1.ConditionalUpdate) workload.Offer {
	offer := workload.Offer{Version: u.Release.Version, Image: u.Release.Image}
	recommended := meta.IsStatusConditionTrue(u.Conditions, "Recommended")
	for i := range u.Risks {
		r := &u.Risks[i]
		applies := meta.FindStatusCondition(r.Conditions, "Applies")
		if applies == nil && recommended || applies != nil && applies.Status == metav1.ConditionFalse {
			continue
		}
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
		if request.Pause != nil {
			if err := pausePools(ctx, conn.Client, request.Pause); err != nil {
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
	if update, changes := desiredUpdate(request); changes {
		spec["desiredUpdate"] = update
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

// desiredUpdate returns the change of spec.desiredUpdate, which removes the fields of the former request.
func desiredUpdate(request workload.UpdateRequest) (change map[string]any, changes bool) {
	switch u := request.Update; {
	case u != nil:
		change = map[string]any{"version": u.Version, "image": u.Image, "force": u.Force, "architecture": nil}
	case request.Withdraw && len(request.AcceptRisks) > 0: // those of other clients
		change = map[string]any{"version": nil, "image": nil, "force": nil, "architecture": nil}
	default:
		return nil, request.Withdraw
	}
	if request.AcceptRisks != nil {
		var risks []map[string]string // null: the schema refuses an empty list
		for _, name := range request.AcceptRisks {
			risks = append(risks, map[string]string{"name": name})
		}
		change["acceptRisks"] = risks
	}
	return change, true
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
