package machines

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// ReadTemplates reads the templates of the infra machines, watches their kinds, and makes the Cluster their
// owner. A missing template is reported when it is needed.
func (c *Creator) ReadTemplates(ctx context.Context, s *scope.Scope) (bool, error) {
	s.Templates = map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured{}
	for _, ref := range facts.InfraTemplatesOf(s.ControlPlane) {
		template, err := kube.External(ctx, c.client, ref, s.ControlPlane.Namespace)
		if err != nil {
			return false, err
		}
		if template == nil {
			continue
		}
		if err := c.Watch(template); err != nil {
			return false, err
		}
		if template, err = kube.Read(ctx, c.client, client.ObjectKeyFromObject(template), template); err != nil {
			return false, err
		}
		if template == nil {
			continue
		}
		s.Templates[ref] = template
		if err := c.ownTemplate(ctx, s, template); err != nil { // for example because the manager lacks the rights for the kind
			c.blockCreation(s, err)
			return false, err
		}
	}
	return true, nil
}

// ownTemplate makes the Cluster an owner of the template, as the contract requires: clusterctl move moves the
// objects that a Cluster owns. It does not use server-side apply, because several clusters may share a
// template. With one field manager, the reference of one Cluster would replace that of another.
func (c *Creator) ownTemplate(ctx context.Context, s *scope.Scope, template *unstructured.Unstructured) error {
	owner := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: s.Cluster.Name, UID: s.Cluster.UID,
	}
	owned := slices.ContainsFunc(template.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID })
	if owned || template.GetDeletionTimestamp() != nil {
		return nil
	}
	key := reconcile.Key("owner "+template.GetKind(), template)
	if left := c.writer.Recent.Pending(key, template.GetResourceVersion()); left > 0 {
		s.Again.In(left)
		return nil
	}
	before := template.DeepCopy()
	template.SetOwnerReferences(util.EnsureOwnerRef(template.GetOwnerReferences(), owner))
	refused, err := c.writer.Owners.Write(
		template, before, func() error { return kube.PatchMetadata(ctx, c.client, before, template, writer.FieldOwner) },
	)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot set the Cluster as an owner of %s %s: %w", before.GetKind(), before.GetName(), err)
	}
	if refused > 0 {
		s.Again.In(refused)
		s.Found.Block(
			tasks.TemplateOwner,
			controlplanev1.MachinesCreatedReason,
			reconcile.OwnersRefusedMessage(
				before.GetKind(), before.GetName(), "Add the verb delete to the rights for its infrastructure provider (docs/getting-started.md)",
			),
		)
		return nil
	}
	c.writer.Recent.Record(key, before.GetResourceVersion())
	return nil
}
