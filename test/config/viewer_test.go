package config_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/gather"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	programs "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// The users have a ClusterRole of Kubernetes in namespace viewed, and no other rights.
const viewed, viewer, editor = "viewed", "viewer", "editor"

// withCredentials are the kinds whose objects may contain credentials. The ClusterRole view does not show them, and the
// ClusterRole edit, whose subjects may read Secrets, does.
var withCredentials = []any{
	"Secret", "Metal3Machine.infrastructure.cluster.x-k8s.io", "Metal3MachineTemplate.infrastructure.cluster.x-k8s.io",
	"BareMetalHost.metal3.io", "PreprovisioningImage.metal3.io", "HostFirmwareComponents.metal3.io", "BMCEventSubscription.metal3.io",
	"DataImage.metal3.io", "AgentClusterInstall.extensions.hive.openshift.io", "InfraEnv.agent-install.openshift.io",
	"Agent.agent-install.openshift.io", "NMStateConfig.agent-install.openshift.io",
}

// acrossNamespaces are the kinds that no RoleBinding covers.
var acrossNamespaces = []any{"ClusterImageSet.hive.openshift.io", "AgentServiceConfig.agent-install.openshift.io"}

// viewedObjects are a Cluster that is being installed on one host.
var viewedObjects = []string{
	`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: viewed, name: seen}
spec:
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: OpenshiftAssistedControlPlane, name: lab}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Cluster, name: seen}
`, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: viewed, name: seen-0, labels: {cluster.x-k8s.io/cluster-name: seen, cluster.x-k8s.io/control-plane: ""}}
spec:
  clusterName: seen
  bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: OpenshiftAssistedConfig, name: seen-0}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Machine, name: seen-0}
`, `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: viewed, name: rack1-u7}
spec: {online: false}
`,
}

// checkUsers proves what the kubectl plugin shows to users with the ClusterRoles view and edit in one namespace.
func checkUsers(ctx context.Context, t *testing.T, e *env.Env) {
	begin := time.Now()
	makeViewed(ctx, t, e)
	for _, user := range []string{viewer, editor} {
		NewWithT(t).Eventually(func() error { // the roles are aggregated in the background
			return as(t, e, user).List(ctx, &clusterv1.MachineList{}, client.InNamespace(viewed))
		}, time.Minute).Should(Succeed())
	}
	t.Run("view shows clusters and their causes", func(t *testing.T) { checkCommandsOfViewer(ctx, t, e) })
	t.Run("view hides the kinds with credentials", func(t *testing.T) {
		NewWithT(t).Expect(hidden(ctx, t, e, viewer)).To(ConsistOf(append(slices.Clone(withCredentials), acrossNamespaces...)...))
	})
	t.Run("edit shows all kinds", func(t *testing.T) {
		NewWithT(t).Expect(hidden(ctx, t, e, editor)).To(ConsistOf(acrossNamespaces...))
	})
	t.Run("no kind can be read that the plugin does not read", func(t *testing.T) { checkOnlyReadKinds(t, e, begin) })
}

// makeViewed creates the objects and the users.
func makeViewed(ctx context.Context, t *testing.T, e *env.Env) {
	t.Helper()
	g, c := NewWithT(t), e.Client()
	g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: viewed}})).To(Succeed())
	for _, manifest := range append(viewedObjects, minimalControlPlane) {
		u := &unstructured.Unstructured{Object: object(t, manifest)}
		u.SetNamespace(viewed)
		g.Expect(c.Create(ctx, u)).To(Succeed())
	}
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: viewed, Name: "seen-0", Labels: map[string]string{clusterv1.ClusterNameLabel: "seen"},
	}}
	config.Spec.BootMode = bootstrapv1.BootModeLiveISO
	g.Expect(c.Create(ctx, config)).To(Succeed())
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: "agent"}
	config.Status.Conditions = []metav1.Condition{{
		Type: bootstrapv1.HostBoundCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.InstallationDiskNotFoundReason,
		Message: "rack1-u7 has no such disk.", LastTransitionTime: metav1.Now(),
	}}
	g.Expect(c.Status().Update(ctx, config)).To(Succeed())
	host := &unstructured.Unstructured{Object: object(t, viewedObjects[2])}
	g.Expect(c.Patch(ctx, host, mergePatch(t, map[string]any{"spec": map[string]any{"consumerRef": map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "namespace": viewed, "name": "seen-0",
	}}}))).To(Succeed()) // a policy refuses the creation of a host in use
	for user, role := range map[string]string{viewer: "view", editor: "edit"} {
		g.Expect(c.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: viewed, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})).To(Succeed())
	}
}

// checkCommandsOfViewer runs the program of the plugin.
func checkCommandsOfViewer(ctx context.Context, t *testing.T, e *env.Env) {
	g := NewWithT(t)
	program, err := e.Components().Program(ctx, programs.Plugin)
	g.Expect(err).NotTo(HaveOccurred())
	run := func(user string, args ...string) (code int, output string) {
		command := exec.CommandContext(ctx, program, append(args, "--kubeconfig", e.Kubeconfig(), "--as", user, "--namespace", viewed)...)
		var written bytes.Buffer
		command.Stdout, command.Stderr = &written, &written
		_ = command.Run() // the exit code is checked
		return command.ProcessState.ExitCode(), written.String()
	}
	code, output := run(viewer, "status", "seen")
	g.Expect(code).To(Equal(0), output)
	g.Expect(output).To(And(
		ContainSubstring("Control plane lab"), ContainSubstring("Machine seen-0"), ContainSubstring("rack1-u7 has no such disk."),
		ContainSubstring("? BareMetalHosts  not readable (no permission)"), ContainSubstring("? Agents  not readable (no permission)"),
	))
	code, output = run(viewer, "why", "machine/seen-0")
	g.Expect(code).To(Equal(3), output)
	g.Expect(output).To(And(ContainSubstring("Blocked: InstallationDiskNotFound"), ContainSubstring("What to do:")))
	code, output = run(viewer, "status")
	g.Expect(code).To(Equal(0), output)
	g.Expect(output).To(ContainSubstring("seen"))
	code, output = run(viewer, "hosts", "seen")
	g.Expect(code).To(Equal(1), output)
	g.Expect(output).To(And(ContainSubstring("cannot list the BareMetalHosts"), ContainSubstring("forbidden")))
	code, output = run(viewer, "status", "--all-namespaces")
	g.Expect(code).To(Equal(1), output)
	g.Expect(output).To(And(ContainSubstring("cannot list the Clusters"), ContainSubstring("at the cluster scope")))

	code, output = run(editor, "status", "seen")
	g.Expect(code).To(Equal(0), output)
	g.Expect(output).To(And(ContainSubstring("BareMetalHost rack1-u7"), Not(ContainSubstring("not readable"))))
	code, output = run(editor, "hosts", "seen")
	g.Expect(code).To(BeElementOf(0, 3), output)
}

// hidden returns the kinds that a user may not read for an archive.
func hidden(ctx context.Context, t *testing.T, e *env.Env, user string) []string {
	t.Helper()
	g := NewWithT(t)
	config := e.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	api, err := reader.NewClient(config, nil)
	g.Expect(err).NotTo(HaveOccurred())
	gaps, err := gather.Write(ctx, gather.Sources{API: api}, gather.Options{
		Namespace: viewed, Cluster: "seen", Output: filepath.Join(t.TempDir(), "seen.tar.gz"), Since: time.Hour, LogBytes: 1,
		Timeout: time.Minute, Version: "test", Time: time.Now(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, gap := range gaps {
		if gap.Cause == snapshot.NoPermission && !strings.Contains(gap.What, " ") { // managers run in other namespaces
			kinds = append(kinds, gap.What)
		}
	}
	return kinds
}

// checkOnlyReadKinds compares the ClusterRoles for users with the requests of the plugin.
func checkOnlyReadKinds(t *testing.T, e *env.Env, begin time.Time) {
	g := NewWithT(t)
	read := map[string]bool{}
	for _, user := range []string{viewer, editor} {
		requests, err := e.Requests(user, begin)
		g.Expect(err).NotTo(HaveOccurred())
		for _, r := range requests.Where(func(r audit.Request) bool { return r.Verb == "list" || r.Verb == "get" }) {
			read[r.Resource+"."+r.Group] = true
		}
	}
	for _, provider := range []string{"bootstrap", "controlplane"} {
		for _, o := range components(t, provider+"/default") {
			var role rbacv1.ClusterRole
			convert(t, o, &role)
			if role.Kind != "ClusterRole" || !strings.Contains(role.Name, "-user-view-") {
				continue
			}
			for r := range listed(&role) {
				g.Expect(read).To(HaveKey(r.resource), "%s of ClusterRole %s", r.verb, role.Name)
			}
		}
	}
}
