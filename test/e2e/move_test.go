package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An installed cluster", Label("move", "nightly"), func() {
	It("that clusterctl moved to another hub is scaled there", func(ctx SpecContext) {
		onlySimulated()
		// Secrets without an owner are moved only with this label.
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "pivot", ClusterName: "roaming",
			Edit: edits(oneWorker, edit("Secret", "", "metadata", "labels", clusterctlv1.ClusterctlMoveLabel)),
		})
		target := startHub(ctx, "target")
		waitAvailable(ctx, cluster)
		before, registered := state(ctx, cluster), registrationOf(ctx, laboratory, cluster)
		boots := bootsOf(laboratory, before)

		By("moving it")
		moved, err := target.TakeOver(ctx, cluster)
		Expect(err).NotTo(HaveOccurred())
		clusterctlMove(ctx, cluster.Namespace, laboratory, target)
		Expect(registrationOf(ctx, laboratory, cluster)).To(Equal(registered), "the registration with the first assisted-service is unchanged")

		By("importing it into the other assisted-service as an installed cluster")
		s := wait(ctx, moved, "imported", func(s *lab.State) bool {
			return s.Installation != nil && s.Installation.Status.DebugInfo.State == "adding-hosts" && serves(s, 4)
		})
		Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.InstalledCondition).Status).To(BeEquivalentTo(metav1.ConditionTrue))
		Eventually(ctx, func() string {
			return lab.Condition(state(ctx, moved).ControlPlane.Status.Conditions, controlplanev1.RegistrationHealthyCondition).Reason
		}).Should(BeEmpty())
		Expect(s.InfraEnvs).To(BeEmpty(), "no image is created for running hosts")
		Expect(bootsOf(target, s)).To(Equal(boots))

		By("revoking the only token of this hub: it is replaced with the copy of assisted-service's kubeconfig")
		revokeTokens(ctx, moved)

		By("adding a worker there")
		_, err = hosts.NewBareMetalHosts(ctx, target.Client(), moved.Namespace, 1, hosts.WithName("more"))
		Expect(err).NotTo(HaveOccurred())
		Expect(moved.Scale(ctx, 2)).To(Succeed())
		s = wait(ctx, moved, "larger", func(s *lab.State) bool {
			return serves(s, 5) && !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool {
				return m.Agent != nil && m.Agent.Status.DebugInfo.State != "added-to-existing-cluster"
			})
		})
		Expect(s.InfraEnvs).To(HaveLen(1), "the InfraEnv of the worker that joined here")
		workload, err := moved.Workload()
		Expect(err).NotTo(HaveOccurred())
		for _, m := range s.Machines {
			if m.Agent != nil {
				expectNode(ctx, workload, m)
			}
		}

		By("removing a moved worker")
		leaving := workerOf(before)
		patchAt(ctx, target.Client(), machineNamed(s, leaving.Name).DeepCopy(),
			`{"metadata":{"annotations":{"`+clusterv1.DeleteMachineAnnotation+`":"true"}}}`)
		Expect(moved.Scale(ctx, 1)).To(Succeed())
		Eventually(ctx, func() error {
			return workload.Get(ctx, types.NamespacedName{Name: leaving.Status.NodeRef.Name}, &corev1.Node{})
		}).WithTimeout(deleteTimeout).Should(MatchError(apierrors.IsNotFound, "gone"))
		s = wait(ctx, moved, "smaller", func(s *lab.State) bool { return serves(s, 4) })
		Expect(bootsOf(target, s)).To(HaveLen(4))

		By("deleting it")
		Expect(moved.Delete(ctx)).To(Succeed())
		Eventually(ctx, func() map[string]types.UID { return registrationOf(ctx, target, moved) }).Should(BeEmpty(),
			"no object of it is left")
		Expect(registrationOf(ctx, laboratory, cluster)).To(Equal(registered))
		Expect(target.Rack.Escaped()).To(BeEmpty())
		Expect(target.Failure()).NotTo(HaveOccurred())
	}, NodeTimeout(4*installTimeout))
})

// startHub starts another laboratory, with the same kind of assisted-service as the first. Both get labels as
// from clusterctl.
func startHub(ctx context.Context, name string) *lab.Lab {
	GinkgoHelper()
	options := laboratoryOptions
	options.Dir = filepath.Join(options.Dir, name)
	hub, err := lab.New(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hub.Stop)
	for _, l := range []*lab.Lab{laboratory, hub} {
		labelLikeClusterctl(ctx, l)
	}
	return hub
}

// labelLikeClusterctl labels the CRDs as "clusterctl init" does: objects of labeled CRDs are moved. The
// documentation of Metal3 advises to label BareMetalHosts too.
func labelLikeClusterctl(ctx context.Context, hub *lab.Lab) {
	GinkgoHelper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(hub.Client().List(ctx, list)).To(Succeed())
	for i := range list.Items {
		if crd := &list.Items[i]; strings.HasSuffix(crd.Name, "cluster.x-k8s.io") || crd.Name == "baremetalhosts.metal3.io" {
			patchAt(ctx, hub.Client(), crd, `{"metadata":{"labels":{"`+clusterctlv1.ClusterctlLabel+`":""}}}`)
		}
	}
}

// clusterctlMove runs clusterctl itself, without a network.
func clusterctlMove(ctx context.Context, namespace string, from, to *lab.Lab) {
	GinkgoHelper()
	program, err := from.Env.Components().Program(ctx, components.Clusterctl)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, program, "move", "--namespace", namespace, "--kubeconfig", from.Env.Kubeconfig(),
		"--to-kubeconfig", to.Env.Kubeconfig())
	cmd.Env = append(os.Environ(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off", "XDG_CONFIG_HOME="+GinkgoT().TempDir())
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(cmd.Run()).To(Succeed())
}

// registrationOf returns the objects of a cluster in the assisted-service of a hub, including its Secrets.
func registrationOf(ctx context.Context, hub *lab.Lab, cluster *lab.Cluster) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	for kind, options := range map[schema.GroupVersionKind][]client.ListOption{
		hivev1.SchemeGroupVersion.WithKind("ClusterDeployment"): nil,
		aiv1beta1.GroupVersion.WithKind("InfraEnv"):             nil,
		aiv1beta1.GroupVersion.WithKind("Agent"):                nil,
		corev1.SchemeGroupVersion.WithKind("Secret"): {
			client.MatchingLabels{"hive.openshift.io/cluster-deployment-name": cluster.Name},
		},
	} {
		for _, object := range listAt(ctx, hub, kind, cluster.Namespace, options...) {
			found[kind.Kind+" "+object.GetName()] = object.GetUID()
		}
	}
	return found
}

// bootsOf returns the numbers of boots of the machines of a cluster, by Machine.
func bootsOf(hub *lab.Lab, s *lab.State) map[string]int {
	GinkgoHelper()
	boots := map[string]int{}
	for _, m := range s.Machines {
		host := hub.Rack.Host(m.Host.Namespace + "/" + m.Host.Name)
		Expect(host).NotTo(BeNil(), m.Name)
		boots[m.Name] = len(host.Boots())
	}
	return boots
}

// serves reports whether the control plane is available and all wanted Machines run. CAPM3 does not report hosts
// as ready that it finds installed, so that the Cluster is not Available.
func serves(s *lab.State, machines int) bool {
	return s.ControlPlane != nil && lab.Condition(s.ControlPlane.Status.Conditions,
		controlplanev1.AvailableCondition).Status == metav1.ConditionTrue &&
		s.Wanted == machines && len(s.Machines) == machines && s.Running() == machines
}

func workerOf(s *lab.State) lab.Machine {
	GinkgoHelper()
	for _, m := range s.Machines {
		if !m.IsControlPlane() {
			return m
		}
	}
	Fail("no worker exists")
	return lab.Machine{}
}
