package e2e

import (
	"context"
	"os"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const retryTimeout = installTimeout + replaceTimeout

var _ = Describe("A failed installation", Label("failure"), func() {
	It("reports the host and the reason, and can be deleted", func(ctx SpecContext) {
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: "failure", ClusterName: "unlucky", HoldAPI: true})
		failInstallation(ctx, cluster)
		record(ctx, cluster, "failed")
		expectDeleted(ctx, cluster)
	}, NodeTimeout(installTimeout+deleteTimeout))

	It("is retried on the same hosts when a user requests it", func(ctx SpecContext) {
		expectRetried(ctx, retriedSample(), "retry", func() {}, func() {})
		Expect(events(ctx, "retry", "InstallationRetried")).To(HaveLen(1))
	}, NodeTimeout(installTimeout+retryTimeout))

	It("is retried though the managers crash at each of their writes", Label("nightly"), func(ctx SpecContext) {
		onlySimulated()
		var live func() int
		expectRetried(ctx, "ha", "retry-mortal", func() { live = crashAtWrites(ctx, "retry-mortal") },
			func() { Expect(live()).To(BeNumerically(">", 20), "crashes") })
	}, NodeTimeout(installTimeout+3*retryTimeout))
})

// retriedSample returns the sample whose installation fails. With each change and without authentication it is a
// single node. That differs only in the downloads of the host and our managers from assisted-service.
func retriedSample() string {
	if laboratoryOptions.Auth == assistedsim.AuthNone && os.Getenv(longVariable) == "" {
		return "sno"
	}
	return "ha"
}

// failInstallation makes the host of a control-plane Machine fail while its disk is written, and waits until
// that is reported.
func failInstallation(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s := wait(ctx, cluster, "discovering hosts", func(s *lab.State) bool {
		return len(s.Machines) > 0 && s.Machines[0].IsControlPlane() && s.Machines[0].Host != nil
	})
	unlucky := s.Machines[0].Host
	host := func() *hosts.Host { return laboratory.Rack.Host(path.Join(unlucky.Namespace, unlucky.Name)) }
	Eventually(host).ShouldNot(BeNil())
	host().Fail(models.HostStageWritingImageToDisk, "disk sda is read-only")
	waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationFailedReason)
	// assisted-service may report the host a moment after the failure of the cluster. Our other manager reports
	// on the host, at its own time.
	Eventually(func(g Gomega) {
		s := state(ctx, cluster)
		g.Expect(lab.Condition(s.ControlPlane.Status.Conditions,
			controlplanev1.InstalledCondition).Message).To(And(ContainSubstring(unlucky.Name), ContainSubstring("disk sda is read-only")))
		g.Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationFailed))
		g.Expect(configHas(s, bootstrapv1.HostInstallationFailedReason)).To(BeTrue())
	}).Should(Succeed())
}

// expectRetried makes the installation of a sample fail, with at most one worker, and requests another attempt.
// The cluster has to be installed by other Machines on the same hosts. beforeRetry is called before the request,
// afterDeletion after the deletion of the former attempt.
func expectRetried(ctx context.Context, sample, namespace string, beforeRetry, afterDeletion func()) {
	GinkgoHelper()
	cluster := apply(ctx, sample, lab.Mutations{Namespace: namespace, ClusterName: "again", HoldAPI: true, Edit: oneWorker})
	failInstallation(ctx, cluster)
	failed := state(ctx, cluster)
	beforeRetry()
	patch(ctx, controlPlaneOf(cluster), `{"metadata":{"annotations":{"`+controlplanev1.RetryInstallationAnnotation+`":"once"}}}`)
	expectReported(ctx, cluster, controlplanev1.InstalledCondition, metav1.ConditionFalse, controlplanev1.RetryingInstallationReason)
	wait(ctx, cluster, "started again", func(s *lab.State) bool {
		record := s.ControlPlane.Annotations[controlplanev1.RetriedInstallationAnnotation]
		return strings.HasPrefix(record, `{"requested":"once"`) && !strings.Contains(record, "givenUp")
	})
	afterDeletion()
	cluster.ReleaseAPI() // an API of the former attempt would have stopped the retry
	waitAvailable(ctx, cluster)
	installed := state(ctx, cluster)
	expectInstallation(installed, 0)
	kubeconfigWorks(ctx, cluster, installed)
	workload := workloadOf(cluster)
	for _, m := range installed.Machines {
		expectNode(ctx, workload, m)
		expectAgent(m)
	}
	expectOnlyOurAgents(installed)
	Expect(uidsOf(installed).Intersection(uidsOf(failed))).To(BeEmpty())
	Expect(hostsOf(installed)).To(Equal(hostsOf(failed)), "no other hosts exist")
	Expect(installed.Installation.UID).NotTo(Equal(failed.Installation.UID))
}

// uidsOf returns the UIDs of the Machines, hostsOf the names of their hosts.
func uidsOf(s *lab.State) sets.Set[types.UID] {
	found := sets.New[types.UID]()
	for _, m := range s.Machines {
		found.Insert(m.UID)
	}
	return found
}

func hostsOf(s *lab.State) sets.Set[string] {
	found := sets.New[string]()
	for _, m := range s.Machines {
		found.Insert(m.Host.Name)
	}
	return found
}
