package helm

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

const (
	nextVersion = "v0.1.1"
	soon        = 3 * time.Minute
)

// hub is a management cluster without our providers, which runs what Helm installs.
type hub struct {
	*world
	env         *env.Env
	deployments *env.Deployments
	begin       time.Time
}

func newHub(t *testing.T) *hub {
	t.Helper()
	g := NewWithT(t)
	h := &hub{world: newWorld(t), begin: time.Now()}
	var err error
	h.env, err = env.Start(t.Context(), env.Options{
		Dir: filepath.Join(h.builder.Root(), "_artifacts", "helm"), LeaveSignals: true,
		Bootstrap: env.ManagerOptions{Disabled: true}, ControlPlane: env.ManagerOptions{Disabled: true},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(h.env.Stop)
	images := map[string]env.Image{}
	for name, image := range map[string]string{env.Bootstrap: "agent-bootstrap-provider", env.ControlPlane: "agent-control-plane-provider"} {
		for _, version := range []string{version, nextVersion} {
			program, err := h.builder.ReleasedManager(t.Context(), name, version)
			g.Expect(err).NotTo(HaveOccurred())
			images[registry+"/"+image+":"+version] = env.Image{Name: name, Program: program}
		}
	}
	h.deployments = h.env.RunDeployments(images)
	t.Cleanup(h.deployments.Stop)
	return h
}

// succeed runs Helm against the hub.
func (h *hub) succeed(args ...string) {
	h.Helper()
	out, err := h.helm(append(args, "--namespace", namespace, "--kubeconfig", h.env.Kubeconfig())...)
	g := NewWithT(h)
	g.Expect(h.deployments.Failure()).NotTo(HaveOccurred())
	g.Expect(err).NotTo(HaveOccurred(), out)
}

func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	h := newHub(t)
	g := NewWithT(t)
	// The API server accepts the optional objects; the hub has no PodMonitors.
	h.succeed("install", "openshift-agent", h.chart, "--create-namespace", "--set", "controlPlane.flags.concurrency=7",
		"--set", "networkPolicy.enabled=true,networkPolicy.egress.enabled=true,bootstrap.additionalEgress[0].ports[0].port=3128",
		"--set", "bootstrap.podDisruptionBudget.maxUnavailable=1,controlPlane.podDisruptionBudget.minAvailable=50%",
		"--set", "controlPlane.topologySpreadConstraints[0].maxSkew=1,controlPlane.topologySpreadConstraints[0].topologyKey=zone,"+
			"controlPlane.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
		"--set", "controlPlane.volumes[0].name=cache,controlPlane.volumeMounts[0].name=cache,controlPlane.volumeMounts[0].mountPath=/cache")
	h.expectManagers(version)
	kinds := h.kinds()
	users := h.makeUsersObject()

	_, next := h.publish(nextVersion)
	h.succeed("upgrade", "openshift-agent", next, "--reset-then-reuse-values")
	h.expectManagers(nextVersion)
	g.Expect(h.deployments.Process(env.ControlPlane).Args).To(ContainElement("--concurrency=7"), "what was set stays")
	g.Expect(h.kinds()).To(Equal(kinds))
	g.Expect(h.usersObject()).To(Equal(users))

	h.expectNothingRefused()
	h.succeed("uninstall", "openshift-agent", "--wait", "--timeout", "3m")
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		g.Eventually(func() any { return h.deployments.Process(name) }).WithTimeout(soon).Should(BeNil(), name)
	}
	h.begin = time.Now() // until a manager is stopped, it sends requests for which it has no rights any more
	role := &rbacv1.ClusterRole{}
	g.Expect(h.env.Client().Get(t.Context(), client.ObjectKey{Name: "openshift-agent-bootstrap-manager-role"},
		role)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	g.Expect(h.kinds()).To(Equal(kinds), "with the kinds all clusters would be deleted")
	g.Expect(h.usersObject()).To(Equal(users))

	// As on a hub where clusterctl, or a release of another name, has installed the kinds.
	other := []string{"install", "hub", next}
	out, err := h.helm(append(other, "--namespace", namespace, "--kubeconfig", h.env.Kubeconfig())...)
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("invalid ownership metadata"))
	h.succeed(append(other, "--take-ownership")...)
	h.expectManagers(nextVersion)
	g.Expect(h.kinds()).To(Equal(kinds))
	g.Expect(h.usersObject()).To(Equal(users))
	h.expectNothingRefused()
}

// expectManagers waits until both managers run in a version, with the accounts that the chart has made for them.
func (h *hub) expectManagers(version string) {
	h.Helper()
	g := NewWithT(h)
	for name, account := range map[string]string{
		env.Bootstrap:    "openshift-agent-bootstrap-manager",
		env.ControlPlane: "openshift-agent-control-plane-manager",
	} {
		g.Eventually(func(g Gomega) {
			g.Expect(h.deployments.Failure()).NotTo(HaveOccurred())
			running := h.deployments.Process(name)
			g.Expect(running).NotTo(BeNil())
			g.Expect(running.Path).To(HaveSuffix(version))
			g.Expect(running.User).To(Equal("system:serviceaccount:" + namespace + ":" + account))
		}).WithTimeout(soon).Should(Succeed(), name)
	}
}

// kinds are the UIDs of our CustomResourceDefinitions.
func (h *hub) kinds() map[string]types.UID {
	h.Helper()
	g := NewWithT(h)
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(h.env.Client().List(h.Context(), list, client.HasLabels{"clusterctl.cluster.x-k8s.io"})).To(Succeed())
	found := map[string]types.UID{}
	for _, kind := range list.Items {
		if strings.HasPrefix(kind.Name, "openshiftassisted") {
			found[kind.Name] = kind.UID
		}
	}
	g.Expect(found).To(HaveLen(4))
	return found
}

// makeUsersObject makes an object of a kind of ours, as users have them, and returns it.
func (h *hub) makeUsersObject() *bootstrapv1.OpenshiftAssistedConfigTemplate {
	h.Helper()
	g := NewWithT(h)
	g.Expect(h.env.Client().Create(h.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})).To(Succeed())
	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "worker"}}
	template.Spec.Template.Spec.AdditionalNTPSources = []string{"ntp.example.com"}
	g.Expect(h.env.Client().Create(h.Context(), template)).To(Succeed())
	return h.usersObject()
}

func (h *hub) usersObject() *bootstrapv1.OpenshiftAssistedConfigTemplate {
	h.Helper()
	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
	NewWithT(h).Expect(h.env.Client().Get(h.Context(), client.ObjectKey{Namespace: "lab", Name: "worker"}, template)).To(Succeed())
	return template
}

// expectNothingRefused checks that the managers had the rights to what they did.
func (h *hub) expectNothingRefused() {
	h.Helper()
	g := NewWithT(h)
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		requests, err := h.env.Requests(h.deployments.Process(name).User, h.begin)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests).NotTo(BeEmpty())
		for _, request := range requests {
			g.Expect(request.Code).NotTo(Equal(http.StatusForbidden), "%s must be allowed to %s %s", request.User, request.Verb, request.Resource)
		}
	}
}
