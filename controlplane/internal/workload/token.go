package workload

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// AccountName is the name of the ServiceAccount for which tokens are issued, in namespace kube-system of the workload cluster, and of the
	// ClusterRoleBinding that makes it an administrator.
	AccountName = "cluster-api-provider-openshift-agent"
	// TokenValidity is how long a token is to be valid; the cluster may make it shorter.
	TokenValidity = 365 * 24 * time.Hour
)

// Token is a credential of the workload cluster.
type Token struct {
	Value string
	// Expires is when the cluster does not accept it any more.
	Expires time.Time
}

// IssueToken makes the workload cluster issue a token for an administrator, a ServiceAccount that is made for this. The cluster must be connected.
func (c *Clusters) IssueToken(ctx context.Context, cluster client.ObjectKey) (Token, error) {
	connection, err := c.cache.GetUncachedClient(ctx, cluster)
	if err != nil {
		return Token{}, fmt.Errorf("cannot issue a token in the workload cluster: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: AccountName}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: AccountName}}
	if _, err := controllerutil.CreateOrPatch(ctx, connection, account, func() error { return nil }); err != nil {
		return Token{}, fmt.Errorf("cannot make ServiceAccount %s in the workload cluster: %w", AccountName, err)
	}
	_, err = controllerutil.CreateOrPatch(ctx, connection, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
		return nil
	})
	if err != nil {
		return Token{}, fmt.Errorf("cannot make ClusterRoleBinding %s in the workload cluster: %w", AccountName, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(TokenValidity.Seconds()))}}
	if err := connection.SubResource("token").Create(ctx, account, request); err != nil {
		return Token{}, fmt.Errorf("cannot issue a token in the workload cluster: %w", err)
	}
	return Token{Value: request.Status.Token, Expires: request.Status.ExpirationTimestamp.Time}, nil
}
