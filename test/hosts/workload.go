package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// defaultVersion is the release of a cluster whose release image has no version in its name (an image with a
// digest).
const defaultVersion = "4.20.0"

// releaseTag matches the version in the tag of a release image, with or without an architecture suffix.
var releaseTag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+[0-9A-Za-z.-]*?)(?:-(?:x86_64|aarch64|s390x|ppc64le|multi))?$`)

// clusterFromHub reads the configuration of a cluster from its AgentClusterInstall and ClusterImageSet.
func (r *Rack) clusterFromHub(ctx context.Context, namespace, name string) (Cluster, error) {
	deployment := &hivev1.ClusterDeployment{}
	if err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, deployment); err != nil {
		return Cluster{}, fmt.Errorf("cannot read ClusterDeployment %s/%s: %w", namespace, name, err)
	}
	if deployment.Spec.ClusterInstallRef == nil {
		return Cluster{}, fmt.Errorf("ClusterDeployment %s/%s has no clusterInstallRef", namespace, name)
	}
	install := &hiveext.AgentClusterInstall{}
	if err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: deployment.Spec.ClusterInstallRef.Name},
		install); err != nil {
		return Cluster{}, fmt.Errorf("cannot read the AgentClusterInstall of %s/%s: %w", namespace, name, err)
	}
	facts := Cluster{
		Version: defaultVersion,
		PlatformNone: install.Status.PlatformType == hiveext.NonePlatformType || install.Spec.PlatformType == hiveext.NonePlatformType ||
			install.Spec.Networking.UserManagedNetworking != nil && *install.Spec.Networking.UserManagedNetworking,
		// The installer makes the control plane schedulable if no workers exist.
		SchedulableControlPlane: install.Spec.MastersSchedulable || install.Spec.ProvisionRequirements.WorkerAgents == 0,
		Arbiter:                 install.Spec.ProvisionRequirements.ArbiterAgents > 0,
		TwoNodes: install.Spec.ProvisionRequirements.ControlPlaneAgents == 2 &&
			install.Spec.ProvisionRequirements.ArbiterAgents == 0,
	}
	if metadata := install.Spec.ClusterMetadata; metadata != nil {
		facts.ID = metadata.ClusterID
	}
	if install.Spec.ImageSetRef == nil {
		return facts, nil
	}
	images := &hivev1.ClusterImageSet{}
	if err := r.reader.Get(ctx, types.NamespacedName{Name: install.Spec.ImageSetRef.Name}, images); err != nil {
		return Cluster{}, fmt.Errorf("cannot read ClusterImageSet %s: %w", install.Spec.ImageSetRef.Name, err)
	}
	facts.ReleaseImage = images.Spec.ReleaseImage
	tagged, _, _ := strings.Cut(facts.ReleaseImage, "@")
	if match := releaseTag.FindStringSubmatch(tagged); match != nil {
		facts.Version = match[1]
	} else if r.options.Version != nil {
		facts.Version = cmp.Or(r.options.Version(facts.ReleaseImage), facts.Version)
	}
	return facts, nil
}

// bringUpAPI makes the API of the cluster answer, with the objects that the installer creates, and the
// ClusterVersion of a running installation.
func (h *Host) bringUpAPI(ctx context.Context, inst *installation) bool {
	up := h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		if err := allowCertificateRequests(ctx, c); err != nil {
			return err
		}
		if err := h.writeInfrastructure(ctx, c, inst); err != nil {
			return err
		}
		if err := writeServerCA(ctx, c); err != nil {
			return err
		}
		return h.writeVersion(ctx, c, inst, configv1.PartialUpdate)
	})
	if up {
		inst.cluster.update(h, func(m *member) { m.serving = true })
	}
	return up
}

// finalize ends the installation of the cluster: its operators are available, its version is rolled out, and its
// controller reports to assisted-service. Members that end at the same time may do it twice, without harm.
func (h *Host) finalize(ctx context.Context, inst *installation) {
	if members, _ := inst.cluster.snapshot(); members[h].finalized {
		return
	}
	done := h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		facts, err := h.rack.options.Cluster(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
		if err != nil {
			return fmt.Errorf("cannot read the configuration of the cluster: %w", err)
		}
		for _, name := range []string{"dns", "etcd", "kube-apiserver"} {
			if err := writeOperator(ctx, c, name, facts.Version); err != nil {
				return err
			}
		}
		return h.writeVersion(ctx, c, inst, configv1.CompletedUpdate)
	})
	if !done {
		return
	}
	err := h.callService(ctx, func() error { return h.rack.options.Service.Finalize(ctx, inst.instruction.ClusterID) })
	if err == nil || errors.Is(err, ErrNotFound) {
		inst.cluster.update(h, func(m *member) { m.finalized = true })
	}
}

// writeInfrastructure writes the topologies of the cluster. Existing ones are kept.
func (h *Host) writeInfrastructure(ctx context.Context, c client.Client, inst *installation) error {
	facts, err := h.rack.options.Cluster(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of the cluster: %w", err)
	}
	inst.twoNodes = facts.TwoNodes
	topology, ofWorkers := configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode
	switch {
	case inst.instruction.SingleNode:
		topology, ofWorkers = configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode
	case facts.Arbiter:
		topology = configv1.HighlyAvailableArbiterMode
	case facts.TwoNodes:
		topology = configv1.DualReplicaTopologyMode
	}
	infrastructure := &configv1.Infrastructure{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Infrastructure"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
	}
	infrastructure.Status = configv1.InfrastructureStatus{
		InfrastructureName: inst.cluster.key.Name, ControlPlaneTopology: topology, InfrastructureTopology: ofWorkers,
	}
	return write(ctx, c, infrastructure, func(existing, _ map[string]any) bool {
		topology, _ := existing["controlPlaneTopology"].(string)
		return topology != ""
	})
}

func (h *Host) writeVersion(ctx context.Context, c client.Client, inst *installation, state configv1.UpdateState) error {
	facts, err := h.rack.options.Cluster(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of the cluster: %w", err)
	}
	if facts.ID == "" {
		facts.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(inst.cluster.key.String())).String()
	}
	version := &configv1.ClusterVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
	}
	version.Spec.ClusterID = configv1.ClusterID(facts.ID)
	now := metav1.Now()
	done := state == configv1.CompletedUpdate
	update := configv1.UpdateHistory{State: state, StartedTime: now, Version: facts.Version, Image: facts.ReleaseImage, Verified: true}
	if done {
		update.CompletionTime = &now
	}
	version.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: facts.Version, Image: facts.ReleaseImage},
		History: []configv1.UpdateHistory{update},
		Conditions: []configv1.ClusterOperatorStatusCondition{
			condition(configv1.OperatorAvailable, done), condition(configv1.OperatorProgressing, !done), condition("Failing", false),
		},
		VersionHash: "simulated",
	}
	return write(ctx, c, version, func(existing, _ map[string]any) bool {
		// The client that upgrades the cluster owns a version that is rolled out.
		history, _, _ := unstructured.NestedSlice(existing, "history")
		for _, entry := range history {
			if fields, ok := entry.(map[string]any); ok && fields["state"] == string(configv1.CompletedUpdate) {
				return true
			}
		}
		return false
	})
}

// KubernetesVersion returns the version of Kubernetes in the release of a cluster; empty if it is not known.
func (r *Rack) KubernetesVersion(ctx context.Context, cluster types.NamespacedName) string {
	facts, err := r.options.Cluster(ctx, cluster.Namespace, cluster.Name)
	if err != nil {
		return ""
	}
	kubernetes, err := openshift.KubernetesVersion(facts.Version)
	if err != nil {
		return ""
	}
	return kubernetes
}

// writeOperator creates an available ClusterOperator. A simulated operator may report conditions as soon as the
// object exists: these are kept, and missing ones are added.
func writeOperator(ctx context.Context, c client.Client, name, version string) error {
	operator := &configv1.ClusterOperator{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		condition(configv1.OperatorAvailable, true), condition(configv1.OperatorProgressing, false),
		condition(configv1.OperatorDegraded, false), condition(configv1.OperatorUpgradeable, true),
	}
	kubernetes, err := openshift.KubernetesVersion(version)
	if err != nil {
		return fmt.Errorf("cannot write ClusterOperator %s: %w", name, err)
	}
	operator.Status.Versions = openshift.OperandVersions(name, version, kubernetes)
	return write(ctx, c, operator, func(existing, wanted map[string]any) bool {
		keepConditions(existing, wanted)
		return existing["versions"] != nil
	})
}

// keepConditions keeps the existing conditions in a status that is about to be written.
func keepConditions(existing, wanted map[string]any) {
	reported, _ := existing["conditions"].([]any)
	kinds := sets.New[any]()
	for _, c := range reported {
		kinds.Insert(c.(map[string]any)["type"])
	}
	added, _ := wanted["conditions"].([]any)
	wanted["conditions"] = append(reported, slices.DeleteFunc(added, func(c any) bool { return kinds.Has(c.(map[string]any)["type"]) })...)
}

func condition(kind configv1.ClusterStatusConditionType, is bool) configv1.ClusterOperatorStatusCondition {
	status := configv1.ConditionFalse
	if is {
		status = configv1.ConditionTrue
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now(), Reason: "AsExpected"}
}

// write creates an object and its status, with any scheme of the client. A final status is kept, and final may
// merge the existing status into the wanted one.
func write(ctx context.Context, c client.Client, typed client.Object, final func(existing, wanted map[string]any) bool) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("cannot convert %s: %w", typed.GetName(), err)
	}
	wanted, _ := fields["status"].(map[string]any)
	if spec, ok := fields["spec"].(map[string]any); ok {
		// The type has no omitempty for this field, and the schema allows no null.
		delete(spec, "signatureStores")
	}
	delete(fields, "status")
	object := &unstructured.Unstructured{Object: fields}
	if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("cannot read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if final(status, wanted) {
		return nil
	}
	object.Object["status"] = wanted
	if err := c.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("cannot write the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
