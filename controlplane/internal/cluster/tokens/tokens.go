// Package tokens issues tokens of an administrator of a workload cluster. The deletion of its Secret ends a token.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// accountName is the name of the ServiceAccount whose tokens are issued, in namespace kube-system of the
	// workload cluster. It is also the name of the ClusterRoleBinding that makes the ServiceAccount an
	// administrator.
	accountName = "cluster-api-provider-openshift-agent"
	// managedByLabel has accountName as its value on the Secrets to which tokens are bound.
	managedByLabel = "app.kubernetes.io/managed-by"
	// Validity is the requested validity of a token. The cluster may shorten it.
	Validity = 28 * 24 * time.Hour
	// clockSkew is the largest expected difference of the cluster's clock.
	clockSkew = 24 * time.Hour
)

// Path is the path of the list of Secrets that tokens are bound to, and of other Secrets. Selector is the label selector of
// the former.
const (
	Path     = "/api/v1/namespaces/" + metav1.NamespaceSystem + "/secrets"
	Selector = managedByLabel + "=" + accountName
)

// boundSecrets select the Secrets to which tokens are bound.
var boundSecrets = []client.ListOption{client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{managedByLabel: accountName}}

// Token is a credential of the workload cluster.
type Token struct {
	Value string
	// Expires is when the token expires.
	Expires time.Time
	// BoundTo is the name of the Secret in namespace kube-system of the cluster. The token ends with this
	// Secret.
	BoundTo string
	// BoundToUID is the UID of that Secret. A recreated Secret does not make the token valid again.
	BoundToUID types.UID
}

// Read returns the version of the list, and the UIDs of the Secrets that tokens are bound to.
func Read(ctx context.Context, reader client.Reader) (string, sets.Set[types.UID], error) {
	bound := &metav1.PartialObjectMetadataList{}
	bound.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := reader.List(ctx, bound, boundSecrets...); err != nil {
		return "", nil, fmt.Errorf("cannot list the Secrets of tokens in the workload cluster: %w", err)
	}
	found := sets.New[types.UID]()
	for i := range bound.Items {
		found.Insert(bound.Items[i].UID)
	}
	return bound.ResourceVersion, found, nil
}

// Issue issues a token of an administrator. It creates the ServiceAccount if necessary, and deletes the Secrets of expired
// tokens.
func Issue(ctx context.Context, remote client.Client, now time.Time) (Token, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: accountName}}
	if err := ensureAccount(ctx, remote, account); err != nil {
		return Token{}, err
	}
	if err := deleteExpired(ctx, remote, now); err != nil {
		return Token{}, err
	}
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, GenerateName: accountName + "-", Labels: map[string]string{managedByLabel: accountName},
		OwnerReferences: []metav1.OwnerReference{{ // the Secrets, which are watched, are deleted with the account, as all tokens end with it
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: rbacv1.ServiceAccountKind, Name: account.Name, UID: account.UID,
		}},
	}}
	if err := remote.Create(ctx, bound); err != nil {
		return Token{}, fmt.Errorf("cannot create a Secret for a token in the workload cluster: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(Validity.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID},
	}}
	if err := remote.SubResource("token").Create(ctx, account, request); err != nil {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), conn.ResponseTimeout) // ctx may have timed out
		defer cancel()
		return Token{}, errors.Join(fmt.Errorf("cannot issue a token in the workload cluster: %w", err),
			client.IgnoreNotFound(remote.Delete(cleanUp, bound)))
	}
	return Token{
		Value: request.Status.Token, Expires: request.Status.ExpirationTimestamp.Time, BoundTo: bound.Name,
		BoundToUID: bound.UID,
	}, nil
}

// ensureAccount ensures that the ServiceAccount exists and is an administrator.
func ensureAccount(ctx context.Context, remote client.Client, account *corev1.ServiceAccount) error {
	if _, err := controllerutil.CreateOrPatch(ctx, remote, account, func() error { return nil }); err != nil {
		return fmt.Errorf("cannot create ServiceAccount %s in the workload cluster: %w", accountName, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	_, err := controllerutil.CreateOrPatch(ctx, remote, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot create ClusterRoleBinding %s in the workload cluster: %w", accountName, err)
	}
	return nil
}

// deleteExpired deletes the Secrets whose tokens have expired. The second newest token stays valid, because
// clients may not have read the new one yet.
func deleteExpired(ctx context.Context, remote client.Client, now time.Time) error {
	bound := &corev1.SecretList{}
	if err := remote.List(ctx, bound, boundSecrets...); err != nil {
		return fmt.Errorf("cannot list the Secrets of tokens in the workload cluster: %w", err)
	}
	for i := range bound.Items {
		if now.Sub(bound.Items[i].CreationTimestamp.Time) < Validity+clockSkew {
			continue
		}
		if err := remote.Delete(ctx, &bound.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete the Secret of an expired token in the workload cluster: %w", err)
		}
	}
	return nil
}

// Revoke deletes the Secret that a token is bound to. This ends the token.
func Revoke(ctx context.Context, remote client.Client, token Token) error {
	return kube.Delete(ctx, remote, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: token.BoundTo, UID: token.BoundToUID,
	}})
}
