package config_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// watched is the namespace of managers that watch only one; elsewhere is another namespace.
const (
	watched   = "default"
	elsewhere = "kube-public"
)

// withoutNamespace are the cluster-scoped kinds that all managers use, including those that watch one
// namespace.
var withoutNamespace = []string{
	"customresourcedefinitions.apiextensions.k8s.io", "clusterimagesets.hive.openshift.io", "apiservers.config.openshift.io",
	"managedclustersets/join.cluster.open-cluster-management.io",
	"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
}

// right is one verb on one resource, as resource.group, or only on the object with a name.
type right struct{ verb, resource, name string }

// rights are the rights that the bindings in a list of objects give the manager: in all namespaces, and in the
// watched namespace. An aggregated ClusterRole, whose rules come from other ClusterRoles, counts as one right.
type rights struct{ everywhere, inNamespace map[right]bool }

func rightsOf(t *testing.T, objects []map[string]any) rights {
	t.Helper()
	g := NewWithT(t)
	rules := map[string]map[right]bool{} // by kind and name of the role
	result := rights{map[right]bool{}, map[right]bool{}}
	var manager rbacv1.Subject
	for _, object := range objects {
		switch kind, _ := object["kind"].(string); kind {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			convert(t, object, &role)
			rules[kind+"/"+role.Name] = listed(&role)
		case "ServiceAccount":
			var account corev1.ServiceAccount
			convert(t, object, &account)
			manager = rbacv1.Subject{Kind: kind, Namespace: account.Namespace, Name: account.Name}
		}
	}
	for _, object := range objects {
		kind, _ := object["kind"].(string)
		if kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		convert(t, object, &binding)
		role := binding.RoleRef.Kind + "/" + binding.RoleRef.Name
		g.Expect(rules).To(HaveKey(role), "%s %s", kind, binding.Name)
		g.Expect(binding.Subjects).To(ConsistOf(manager), "%s %s", kind, binding.Name)
		switch granted := rules[role]; {
		case kind == "ClusterRoleBinding":
			maps.Copy(result.everywhere, granted)
		case binding.Namespace == watched:
			maps.Copy(result.inNamespace, granted)
		}
	}
	return result
}

func listed(role *rbacv1.ClusterRole) map[right]bool {
	all := map[right]bool{}
	if role.AggregationRule != nil {
		all[right{verb: "aggregated", resource: role.Name}] = true
	}
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""} // all objects
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all[right{verb, strings.TrimSuffix(resource+"."+group, "."), name}] = true
					}
				}
			}
		}
	}
	return all
}

func convert(t *testing.T, object map[string]any, into any) {
	t.Helper()
	NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)).To(Succeed())
}

// A manager that watches one namespace has the rights of the others, most of them only in that namespace.
func TestRolesOfOneNamespace(t *testing.T) {
	for _, provider := range []string{"bootstrap", "controlplane"} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)
			byDefault := rightsOf(t, components(t, provider+"/default"))
			g.Expect(byDefault.inNamespace).To(BeEmpty())

			namespaced := rightsOf(t, components(t, provider+"/namespaced"))
			union := maps.Clone(namespaced.everywhere)
			maps.Copy(union, namespaced.inNamespace)
			g.Expect(slices.Collect(maps.Keys(union))).To(ConsistOf(slices.Collect(maps.Keys(byDefault.everywhere))))
			for r := range namespaced.everywhere {
				g.Expect(withoutNamespace).To(ContainElement(r.resource), "%s %s is needed in the watched namespace only", r.verb, r.resource)
			}
			for r := range namespaced.inNamespace {
				g.Expect(withoutNamespace).NotTo(ContainElement(r.resource), "a Role grants no right on %s", r.resource)
			}
		})
	}
}

// Hubs on OpenShift require the right to delete an object whose owner changes. The managers delete no Secrets
// and have this right on no other hub.
func TestOnlyOpenShiftHubsGrantDeletionOfSecrets(t *testing.T) {
	deletion := right{verb: "delete", resource: "secrets"}
	for _, provider := range []string{"bootstrap", "controlplane"} {
		for variant, file := range map[string]string{"default": "openshift-hub.yaml", "namespaced": "openshift-hub-namespaced.yaml"} {
			t.Run(provider+" "+variant, func(t *testing.T) {
				g := NewWithT(t)
				shipped := components(t, provider+"/"+variant)
				before := rightsOf(t, shipped)
				g.Expect(before.everywhere).NotTo(HaveKey(deletion))
				g.Expect(before.inNamespace).NotTo(HaveKey(deletion))

				content, err := os.ReadFile("../../config/" + provider + "/" + file)
				g.Expect(err).NotTo(HaveOccurred())
				added, err := readManifests(bytes.NewReader(bytes.ReplaceAll(content, []byte("${WATCHED_NAMESPACE}"), []byte(watched))))
				g.Expect(err).NotTo(HaveOccurred())
				after := rightsOf(t, append(shipped, added...))
				wanted := before.everywhere
				if variant == "namespaced" {
					wanted = before.inNamespace
				}
				wanted[deletion] = true
				g.Expect(after).To(Equal(before), "no other right")
			})
		}
	}
}

// Rights to write infrastructure name the kinds and all subresources; only rights to read use wildcards.
func TestWildcardsGrantOnlyReads(t *testing.T) {
	for _, provider := range []string{"bootstrap", "controlplane"} {
		for r := range rightsOf(t, components(t, provider+"/default")).everywhere {
			if strings.HasPrefix(r.resource, "*") {
				NewWithT(t).Expect(r.verb).To(BeElementOf("get", "list", "watch"), "%s: %s", provider, r.resource)
			}
		}
	}
}

// checkRoles checks the rights of managers for one namespace with the API server.
func checkRoles(ctx context.Context, t *testing.T, e *env.Env) {
	for provider, name := range map[string]string{"bootstrap": env.Bootstrap, "controlplane": env.ControlPlane} {
		t.Run(provider, func(t *testing.T) {
			g, user := NewWithT(t), e.Manager(name).User
			all := rightsOf(t, components(t, provider+"/namespaced"))
			for r := range all.inNamespace {
				if r.verb != "aggregated" {
					g.Expect(may(ctx, t, e.Client(), user, watched, r)).To(BeTrue(), "%v in the watched namespace", r)
					g.Expect(may(ctx, t, e.Client(), user, elsewhere, r)).To(BeFalse(), "%v in another namespace", r)
				}
			}
			for r := range all.everywhere {
				g.Expect(may(ctx, t, e.Client(), user, "", r)).To(BeTrue(), "%v", r)
			}
		})
	}
}

// may reports whether the API server grants a user a right. An empty namespace means all namespaces.
func may(ctx context.Context, t *testing.T, c client.Client, user, namespace string, r right) bool {
	t.Helper()
	names, group, _ := strings.Cut(r.resource, ".")
	resource, subresource, _ := strings.Cut(names, "/")
	account := strings.Split(user, ":")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   user,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account[2], "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: group, Resource: resource, Subresource: subresource, Name: r.name,
		},
	}}
	NewWithT(t).Expect(c.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

// checkManagers proves that these rights suffice: a controller reconciles nothing before all its caches are
// synced.
func checkManagers(ctx context.Context, t *testing.T, e *env.Env, begin time.Time) {
	g, c := NewWithT(t), e.Client()
	for _, manifest := range []string{minimalConfig, minimalControlPlane} {
		for _, namespace := range []string{elsewhere, watched} {
			u := &unstructured.Unstructured{Object: object(t, manifest)}
			u.SetNamespace(namespace)
			g.Expect(c.Create(ctx, u)).To(Succeed())
			conditions := func() []any {
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
				found, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
				return found
			}
			if namespace == watched {
				g.Eventually(conditions, time.Minute).ShouldNot(BeEmpty(), u.GetKind())
				u.SetNamespace(elsewhere)
				g.Expect(conditions()).To(BeEmpty(), "the namespace is not watched")
			}
		}
	}
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		requests, err := e.Requests(e.Manager(name).User, begin)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests).NotTo(BeEmpty())
		for _, r := range requests {
			g.Expect(r.Code).NotTo(Equal(403), "%s must be allowed to %s %s", name, r.Verb, r.URI)
		}
	}
}

// The example for another infrastructure provider has exactly the rights that the control plane provider has
// for the kinds of Metal3. The table before the example lists the rights of both providers.
func TestExampleForOtherInfrastructureHasRightsOfMetal3(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/getting-started.md")
	g.Expect(err).NotTo(HaveOccurred())
	role := exampleRole(t)
	example := listed(&role)
	for provider, name := range map[string]string{"bootstrap": "Agent Bootstrap", "controlplane": "Agent Control Plane"} {
		written := map[string][]string{}
		for r := range rightsOf(t, components(t, provider+"/default")).everywhere {
			resource, infrastructure := strings.CutSuffix(r.resource, ".infrastructure.cluster.x-k8s.io")
			if !infrastructure || resource == "*" {
				continue
			}
			written[resource] = append(written[resource], r.verb)
			if provider == "controlplane" {
				other := right{verb: r.verb, resource: strings.Replace(r.resource, "metal3", "example", 1)}
				g.Expect(example).To(HaveKey(other))
				delete(example, other)
			}
		}
		g.Expect(written).NotTo(BeEmpty())
		for resource, verbs := range written {
			row := regexp.MustCompile("(?m)^\\| " + name + " \\| `" + resource + "` \\| (.*?) \\|").FindSubmatch(content)
			g.Expect(row).NotTo(BeNil(), "%s writes %s", name, resource)
			g.Expect(strings.Split(strings.ReplaceAll(string(row[1]), "`", ""), ", ")).To(ConsistOf(verbs), "%s: %s", name, resource)
		}
	}
	g.Expect(example).To(BeEmpty(), "no other right")
}

// exampleRole returns the ClusterRole of docs/getting-started.md for another infrastructure provider.
func exampleRole(t *testing.T) (role rbacv1.ClusterRole) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/getting-started.md")
	g.Expect(err).NotTo(HaveOccurred())
	var example string
	for _, block := range docs.Parse("docs/getting-started.md", content).Blocks("yaml") {
		if strings.Contains(block.Text, "aggregate-to-openshift-agent") {
			example = block.Text
		}
	}
	convert(t, object(t, example), &role)
	return role
}

// checkOtherInfrastructure installs the example of docs/getting-started.md.
func checkOtherInfrastructure(ctx context.Context, t *testing.T, e *env.Env) {
	g := NewWithT(t)
	role := exampleRole(t)
	wanted := listed(&role)
	g.Expect(wanted).NotTo(BeEmpty())
	user := e.Manager(env.ControlPlane).User
	for r := range wanted {
		g.Expect(may(ctx, t, e.Client(), user, watched, r)).To(BeFalse(), "%v before the installation", r)
	}
	g.Expect(e.Client().Create(ctx, &role)).To(Succeed())
	for r := range wanted {
		g.Eventually(func() bool { return may(ctx, t, e.Client(), user, watched, r) }, time.Minute).Should(BeTrue(), "%v", r)
		g.Expect(may(ctx, t, e.Client(), user, elsewhere, r)).To(BeFalse(), "%v in another namespace", r)
	}
}

// checkOwners shows why the bootstrap provider has the right to delete Secrets, although it deletes none.
// Without the right it could not restore the owner of the bootstrap data.
func checkOwners(ctx context.Context, t *testing.T, e *env.Env) {
	g, c := NewWithT(t), e.Client()
	config := &unstructured.Unstructured{Object: object(t, minimalConfig)}
	config.SetNamespace(watched)
	config.SetName("owner")
	g.Expect(c.Create(ctx, config)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "data"}}
	g.Expect(c.Create(ctx, secret)).To(Succeed())
	own := mergePatch(t, map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		metav1.NewControllerRef(config, config.GroupVersionKind()),
	}}})
	shipped := e.Manager(env.Bootstrap).User
	g.Expect(as(t, e, shipped).Patch(ctx, secret.DeepCopy(), own, client.DryRunAll)).To(Succeed())

	role := &rbacv1.Role{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: watched, Name: "openshift-agent-bootstrap-manager-role"}, role)).To(Succeed())
	less := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "less"}, Rules: role.Rules}
	for i, rule := range less.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			less.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "delete" })
		}
	}
	g.Expect(c.Create(ctx, less)).To(Succeed())
	const user = "system:serviceaccount:" + watched + ":less"
	g.Expect(c.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "less"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "less"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: watched, Name: "less"}},
	})).To(Succeed())
	g.Eventually(func() bool { return may(ctx, t, c, user, watched, right{verb: "patch", resource: "secrets"}) }, time.Minute).Should(BeTrue())
	err := as(t, e, user).Patch(ctx, secret.DeepCopy(), own, client.DryRunAll)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(kube.OwnersRefused(err)).To(BeTrue(), "the managers recognize the answer: %v", err)
}

// as returns a client that impersonates a user.
func as(t *testing.T, e *env.Env, user string) client.Client {
	t.Helper()
	config := e.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}
