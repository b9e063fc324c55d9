package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// accountName is the name of the ServiceAccount for which tokens are issued, in namespace kube-system of the workload cluster, and of the
	// ClusterRoleBinding that makes it an administrator.
	accountName = "cluster-api-provider-openshift-agent"
	// managedByLabel has accountName as its value on the Secrets to which tokens are bound.
	managedByLabel = "app.kubernetes.io/managed-by"
	// TokenValidity is how long a token is to be valid; the cluster may make it shorter.
	TokenValidity = 28 * 24 * time.Hour
	// clockSkew is what the clock of the cluster may be off.
	clockSkew = 24 * time.Hour
)

// ErrNotConnected is returned for a cluster to which there is no connection.
var ErrNotConnected = errors.New("the workload cluster is not connected")

// boundSecrets select the Secrets to which tokens are bound.
var boundSecrets = []client.ListOption{client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{managedByLabel: accountName}}

// Token is a credential of the workload cluster.
type Token struct {
	Value string
	// Expires is when the cluster does not accept it any more.
	Expires time.Time
	// BoundTo is the Secret in namespace kube-system of the cluster with which the token ends.
	BoundTo string
	// BoundToUID is the UID of that Secret: another of its name does not make the token valid again.
	BoundToUID types.UID
}

// tokens are what is known of the Secrets that tokens are bound to: with its Secret a token ends.
var tokens = resource{
	name: "Secrets", path: "/api/v1/namespaces/" + metav1.NamespaceSystem + "/secrets", selector: managedByLabel + "=" + accountName,
	read: func(ctx context.Context, c client.Client) (string, func(*connection), error) {
		version, found, err := readTokens(ctx, c)
		return version, func(l *connection) { l.tokens = found }, err
	},
	take: func(_ context.Context, _ *connection, _ *access, e watchEvent) (func(*connection), error) {
		return func(l *connection) {
			if e.Type == watch.Deleted {
				l.tokens.Delete(e.Object.Metadata.UID)
			} else {
				l.tokens.Insert(e.Object.Metadata.UID)
			}
		}, nil
	},
}

// call makes requests to a cluster that is connected, which has some time for all of them.
func (c *Clusters) call(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, client.Client) error) error {
	return c.through(ctx, cluster, func(ctx context.Context, connection client.Client, _ *access) error { return requests(ctx, connection) })
}

// through is call for those who need more than a client.
func (c *Clusters) through(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, client.Client, *access) error) error {
	l, access, err := c.connected(cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	err = access.call(func(connection client.Client) error { return requests(ctx, connection, access) })
	if apierrors.IsUnauthorized(err) {
		l.again() // what is watched goes on, but these credentials are of no use any more
	}
	return err
}

// connected is the connection to a cluster.
func (c *Clusters) connected(cluster client.ObjectKey) (*connection, *access, error) {
	l := c.known(cluster)
	if l == nil {
		return nil, nil, ErrNotConnected
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.access == nil || !l.connected {
		return nil, nil, ErrNotConnected
	}
	return l, l.access, nil
}

// IssueToken makes the workload cluster issue a token for an administrator, a ServiceAccount that is made for this. The cluster must be connected.
func (c *Clusters) IssueToken(ctx context.Context, cluster client.ObjectKey) (Token, error) {
	var token Token
	err := c.call(ctx, cluster, func(ctx context.Context, connection client.Client) (err error) {
		token, err = issueToken(ctx, connection, c.now())
		return err
	})
	return token, err
}

// RevokeToken deletes the Secret that a token is bound to, with which it ends. The cluster must be connected.
func (c *Clusters) RevokeToken(ctx context.Context, cluster client.ObjectKey, token Token) error {
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: token.BoundTo, UID: token.BoundToUID}}
	return c.call(ctx, cluster, func(ctx context.Context, connection client.Client) error {
		return kube.Delete(ctx, connection, bound)
	})
}

// HasToken reports whether the workload cluster has the Secret, by its UID, that a token is bound to. It is asked itself, and must be connected.
func (c *Clusters) HasToken(ctx context.Context, cluster client.ObjectKey, boundTo types.UID) (bool, error) {
	var found sets.Set[types.UID]
	err := c.call(ctx, cluster, func(ctx context.Context, connection client.Client) (err error) {
		_, found, err = readTokens(ctx, connection)
		return err
	})
	return found.Has(boundTo), err
}

// readTokens are the UIDs of the Secrets that tokens are bound to, and the version of the list.
func readTokens(ctx context.Context, reader client.Reader) (string, sets.Set[types.UID], error) {
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

func issueToken(ctx context.Context, connection client.Client, now time.Time) (Token, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: accountName}}
	if err := makeAccount(ctx, connection, account); err != nil {
		return Token{}, err
	}
	if err := deleteOutlived(ctx, connection, now); err != nil {
		return Token{}, err
	}
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, GenerateName: accountName + "-", Labels: map[string]string{managedByLabel: accountName},
		OwnerReferences: []metav1.OwnerReference{{ // all tokens end with the account: so do the Secrets, which are watched
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: rbacv1.ServiceAccountKind, Name: account.Name, UID: account.UID,
		}},
	}}
	if err := connection.Create(ctx, bound); err != nil {
		return Token{}, fmt.Errorf("cannot make a Secret for a token in the workload cluster: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(TokenValidity.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID},
	}}
	if err := connection.SubResource("token").Create(ctx, account, request); err != nil {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime) // also when the time is over
		defer cancel()
		return Token{}, errors.Join(fmt.Errorf("cannot issue a token in the workload cluster: %w", err), client.IgnoreNotFound(connection.Delete(cleanUp, bound)))
	}
	return Token{Value: request.Status.Token, Expires: request.Status.ExpirationTimestamp.Time, BoundTo: bound.Name, BoundToUID: bound.UID}, nil
}

// makeAccount makes the ServiceAccount, and an administrator of it.
func makeAccount(ctx context.Context, connection client.Client, account *corev1.ServiceAccount) error {
	if _, err := controllerutil.CreateOrPatch(ctx, connection, account, func() error { return nil }); err != nil {
		return fmt.Errorf("cannot make ServiceAccount %s in the workload cluster: %w", accountName, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	_, err := controllerutil.CreateOrPatch(ctx, connection, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot make ClusterRoleBinding %s in the workload cluster: %w", accountName, err)
	}
	return nil
}

// deleteOutlived deletes the Secrets whose tokens have expired. The token before the last stays valid: somebody may not have seen the new one yet.
func deleteOutlived(ctx context.Context, connection client.Client, now time.Time) error {
	bound := &corev1.SecretList{}
	if err := connection.List(ctx, bound, boundSecrets...); err != nil {
		return fmt.Errorf("cannot list the Secrets of tokens in the workload cluster: %w", err)
	}
	for i := range bound.Items {
		if now.Sub(bound.Items[i].CreationTimestamp.Time) < TokenValidity+clockSkew {
			continue
		}
		if err := connection.Delete(ctx, &bound.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete the Secret of an expired token in the workload cluster: %w", err)
		}
	}
	return nil
}
