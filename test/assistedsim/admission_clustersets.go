package assistedsim

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterSetPolicy is the name of the policy, and of its binding.
const clusterSetPolicy = "clusterdeployments.clustersets.open-cluster-management.io"

// mayJoin is the right that the webhook of Open Cluster Management requires of the creator of a
// ClusterDeployment (validateClusterDeployment of stolostron/multicloud-operators-foundation, June 2026). A
// ClusterDeployment without a set needs the right for all sets.
const mayJoin = `has(object.spec.clusterPoolRef) ||
authorizer.group('cluster.open-cluster-management.io').resource('managedclustersets').
	subresource('join').name(variables.set).check('create').allowed()`

// InstallClusterSets makes the API server deny ClusterDeployments like a hub with ACM or MCE. These products
// are not part of assisted-service, but most hubs with assisted-service have one of them.
func InstallClusterSets(ctx context.Context, c client.Client) error {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: clusterSetPolicy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"hive.openshift.io"}, APIVersions: []string{"v1"},
						Resources: []string{"clusterdeployments"},
					},
				},
			}}},
			Variables: []admissionregistrationv1.Variable{{
				Name: "set",
				Expression: `has(object.metadata.labels) && 'cluster.open-cluster-management.io/clusterset' in ` +
					`object.metadata.labels ? object.metadata.labels['cluster.open-cluster-management.io/clusterset'] : ''`,
			}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: mayJoin,
				Reason:     ptr.To(metav1.StatusReasonForbidden),
				MessageExpression: `'user "' + request.userInfo.username + '" cannot add/remove the resource to/from ` +
					`ManagedClusterSet "' + variables.set + '"'`,
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clusterSetPolicy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: clusterSetPolicy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create the admission policy of cluster sets: %w", err)
		}
	}
	return nil
}
