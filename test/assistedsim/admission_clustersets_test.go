package assistedsim

import (
	"os"
	"time"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// shippedRoles are the roles of the control plane provider's manifests.
var shippedRoles = []string{"../../config/controlplane/rbac/role.yaml", "../../config/controlplane/rbac/cluster_role.yaml"}

func clusterSetsAreJoined(b bed) {
	var shipped, without []rbacv1.PolicyRule
	for _, path := range shippedRoles {
		content, err := os.ReadFile(path)
		b.Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.ClusterRole{}
		b.Expect(yaml.UnmarshalStrict(content, role)).To(Succeed())
		shipped = append(shipped, role.Rules...)
	}
	for _, rule := range shipped {
		if rule.APIGroups[0] != "cluster.open-cluster-management.io" {
			without = append(without, rule)
		}
	}
	ns := b.namespace()
	refused := func(c client.Client) error { return c.Create(b.ctx, b.deploymentIn(ns), client.DryRunAll) }
	denied := b.as(ns+"-without", without)
	b.Eventually(func() error { return refused(denied) }).Should(And(Satisfy(apierrors.IsForbidden),
		MatchError(ContainSubstring(`cannot add/remove the resource to/from ManagedClusterSet ""`))))
	b.Eventually(func() error { return refused(b.as(ns+"-shipped", shipped)) }).Should(Succeed())
	b.Consistently(func() error { return refused(denied) }, time.Second).ShouldNot(Succeed())
}

func (b bed) deploymentIn(namespace string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "joins"},
		Spec:       hivev1.ClusterDeploymentSpec{ClusterName: "joins", BaseDomain: "example.com"},
	}
}

// as returns a client of a user with the given rules only.
func (b bed) as(user string, rules []rbacv1.PolicyRule) client.Client {
	b.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	b.Expect(client.IgnoreAlreadyExists(b.client.Create(b.ctx, role))).To(Succeed())
	b.Expect(client.IgnoreAlreadyExists(b.client.Create(b.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))).To(Succeed())
	config := rest.CopyConfig(b.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: b.client.Scheme()})
	b.Expect(err).NotTo(HaveOccurred())
	return c
}
