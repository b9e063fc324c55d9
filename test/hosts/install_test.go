package hosts

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/assisted-service/models"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// booted provisions n hosts from the live ISO and waits until they registered.
func (l *lab) booted(n int) []*Host {
	l.hosts(n)
	all := make([]*Host, 0, n)
	for i := range n {
		name := fmt.Sprintf("host-%d", i)
		l.bootISO(name, testInfraEnv)
		l.Eventually(func() int {
			if h := l.rack.Host(name); h != nil {
				return h.Registrations()
			}
			return 0
		}).Should(Equal(1))
		all = append(all, l.rack.Host(name))
	}
	return all
}

// singleNode installs a cluster on one host, whose Node is called sno.
func (l *lab) singleNode() *Host {
	h := l.booted(1)[0]
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode, order.IgnitionOverrides = true, true, overrides("KUBELET_NODE_NAME=sno\n")
	l.service.order(h.Hardware().UUID, order)
	l.Eventually(h.Stage).Should(Equal(models.HostStageDone))
	l.installed(h)
	return h
}

// outage returns a switch that makes the API of the cluster refuse connections; initially it does not.
func (l *lab) outage() *atomic.Bool {
	down := &atomic.Bool{}
	open := l.rack.options.Workload
	l.rack.options.Workload = func(ctx context.Context, namespace, name string) (client.Client, error) {
		if down.Load() {
			return nil, errors.New("connection refused")
		}
		return open(ctx, namespace, name)
	}
	return down
}

// silence returns a switch that leaves every read from the API of the cluster without an answer.
func (l *lab) silence() *atomic.Bool {
	silent := &atomic.Bool{}
	open := l.rack.options.Workload
	l.rack.options.Workload = func(ctx context.Context, namespace, name string) (client.Client, error) {
		c, err := open(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if silent.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.Get(ctx, key, o, opts...)
			},
		}), nil
	}
	return silent
}

// overrides returns an Ignition config that writes the kubelet's environment file.
func overrides(environment string) string {
	return `{"ignition":{"version":"3.2.0"},"storage":{"files":[` +
		`{"path":"/etc/kubernetes/kubelet-env","mode":420,"contents":{"source":"data:;base64,` +
		base64.StdEncoding.EncodeToString([]byte(environment)) + `"}}]}}`
}

func installOrder(h *Host, role models.HostRole) Instruction {
	return Instruction{
		Kind: Install, ClusterNamespace: labNamespace, ClusterName: "c1", ClusterID: "assisted-c1",
		Hostname: h.Hardware().Name + "-node", Role: role,
		InstallationDisk:  h.Hardware().Disks[0].ByID,
		IgnitionOverrides: overrides("CUSTOM_KUBELET_LABELS=\"metal3.io/uuid=uid-" + h.Hardware().Name + "\"\n"),
		NodeLabels:        map[string]string{"late": "label"},
	}
}

func (l *lab) stages(h *Host) func() []models.HostStage {
	return func() []models.HostStage { return l.service.state(h.Hardware().UUID).stages }
}

func (l *lab) installed(h *Host) {
	inst, _ := h.Instruction()
	l.Eventually(l.stages(h)).Should(Equal(Stages(inst)), h.Name())
}

func (l *lab) clusterVersion() *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{}
	if err := l.workload.Get(l.ctx, types.NamespacedName{Name: "version"}, version); err != nil {
		return nil
	}
	return version
}

func (l *lab) rolledOut() bool {
	v := l.clusterVersion()
	return v != nil && len(v.Status.History) == 1 && v.Status.History[0].State == configv1.CompletedUpdate
}

// topologies returns the topologies of the control plane and of the cluster's other services.
func (l *lab) topologies() []configv1.TopologyMode {
	infrastructure := &configv1.Infrastructure{}
	l.Expect(l.workload.Get(l.ctx, types.NamespacedName{Name: "cluster"}, infrastructure)).To(Succeed())
	return []configv1.TopologyMode{infrastructure.Status.ControlPlaneTopology, infrastructure.Status.InfrastructureTopology}
}

func TestInstallHighlyAvailableCluster(t *testing.T) {
	l := newLab(t)
	all := l.booted(5)
	// The order in which the hosts start must not matter: here the bootstrap is last.
	for i := 4; i >= 0; i-- {
		order := installOrder(all[i], models.HostRoleWorker)
		if i < 3 {
			order.Role, order.Bootstrap = models.HostRoleMaster, i == 0
		}
		l.service.order(all[i].Hardware().UUID, Instruction{Kind: Exit}, order)
	}
	for i, h := range all {
		l.Eventually(func() models.HostStage { return h.Stage() }).Should(Equal(models.HostStageDone))
		l.installed(h)
		l.Expect(h.Registrations()).To(Equal(2), "the exit made it register again")
		node := l.node(h.Hardware().Name + "-node")()
		l.Expect(node.Labels).To(HaveKeyWithValue(uuidLabel, "uid-"+h.Hardware().Name))
		l.Expect(node.Labels).To(HaveKeyWithValue("late", "label"))
		l.Expect(node.Spec.ProviderID).To(BeEmpty())
		l.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal("v1.32.5"))
		l.Expect(readiness(node)).To(Equal(corev1.ConditionTrue))
		_, controlPlane := node.Labels[controlPlaneLabel]
		l.Expect(controlPlane).To(Equal(i < 3))
		boots := h.Boots()
		l.Expect(boots[len(boots)-1].System).To(Equal(Installed))
	}
	l.Eventually(l.rolledOut).Should(BeTrue())
	version := l.clusterVersion()
	l.Expect(version.Status.Desired.Version).To(Equal("4.19.3"))
	l.Expect(version.Spec.ClusterID).NotTo(BeEmpty())
	l.Expect(l.topologies()).To(HaveEach(configv1.HighlyAvailableTopologyMode))
	for _, name := range []string{"etcd", "kube-apiserver"} {
		operator := &configv1.ClusterOperator{}
		l.Expect(l.workload.Get(l.ctx, types.NamespacedName{Name: name}, operator)).To(Succeed())
		l.Expect(operator.Status.Conditions[0].Type).To(Equal(configv1.OperatorAvailable))
	}

	l.Eventually(l.service.reportedComplete).Should(ConsistOf("assisted-c1"))
	l.Expect(l.rack.Escaped()).To(BeEmpty())
}

func TestDayTwoHostRequestsCertificatesAndReportsNothingAfterItsReboot(t *testing.T) {
	l := newLab(t)
	late := l.rack.newDayTwo(l, "late")
	l.Eventually(late.Problem).Should(MatchError(errNotApproved))
	l.Expect(l.node("late-node")()).To(BeNil(), "a node without a certificate cannot register")
	client := l.request(certificatesv1.KubeAPIServerClientKubeletSignerName)
	l.Expect(client.Spec.Username).To(Equal("system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"))
	l.Expect(client.Spec.Groups).To(HaveLen(3))
	l.Expect(subjectOf(client)).To(Equal("CN=system:node:late-node,O=system:nodes"))

	l.approve(client)
	l.Eventually(late.Stage).Should(Equal(models.HostStageDone))
	l.Expect(readiness(l.node("late-node")())).To(Equal(corev1.ConditionTrue))
	l.Expect(l.node("late-node")().Labels).NotTo(HaveKey("late"), "the hub sets them instead")
	serving := l.request(certificatesv1.KubeletServingSignerName)
	l.Expect(serving.Spec.Username).To(Equal("system:node:late-node"))
	l.Expect(l.stages(late)()).To(Equal(untilReboot(Stages(Instruction{Role: models.HostRoleWorker, DayTwo: true}))))
}

func TestHostWithExpiredCertificatesIsReadyAfterNewApprovals(t *testing.T) {
	l := newLab(t)
	late := l.rack.newDayTwo(l, "late")
	l.Eventually(late.Problem).Should(MatchError(errNotApproved))
	l.approve(l.request(certificatesv1.KubeAPIServerClientKubeletSignerName))
	l.Eventually(late.Stage).Should(Equal(models.HostStageDone))
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		l.Expect(l.workload.Delete(l.ctx, l.request(signer))).To(Succeed())
	}

	late.PowerOff()
	late.ExpireCertificates()
	l.Expect(l.node("late-node")().Status.Conditions).To(HaveEach(HaveField("LastHeartbeatTime.Time",
		BeTemporally("~", time.Now().Add(-expiredSilence), time.Minute))))
	late.PowerOn()
	l.Eventually(late.Problem).Should(MatchError(errNotApproved))
	l.Expect(readiness(l.node("late-node")())).To(Equal(corev1.ConditionUnknown))
	l.approve(l.request(certificatesv1.KubeAPIServerClientKubeletSignerName))
	l.Eventually(func() corev1.ConditionStatus { return readiness(l.node("late-node")()) }).Should(Equal(corev1.ConditionTrue))
	l.request(certificatesv1.KubeletServingSignerName)

	late.Reboot()
	l.Eventually(func() corev1.ConditionStatus { return readiness(l.node("late-node")()) }).Should(Equal(corev1.ConditionTrue),
		"the new certificates are valid")
	l.request(certificatesv1.KubeAPIServerClientKubeletSignerName)
}

func TestHangingHostStartsWhenReleased(t *testing.T) {
	l := newLab(t)
	late := l.rack.newDayTwo(l, "late")
	l.Eventually(late.Problem).Should(MatchError(errNotApproved))
	l.approve(l.request(certificatesv1.KubeAPIServerClientKubeletSignerName))
	l.Eventually(late.Stage).Should(Equal(models.HostStageDone))

	release := late.Hang()
	late.Reboot()
	ready := func() corev1.ConditionStatus { return readiness(l.node("late-node")()) }
	l.Consistently(ready).Should(Equal(corev1.ConditionUnknown))
	l.Expect(late.PoweredOn()).To(BeTrue())
	release()
	l.Eventually(ready).Should(Equal(corev1.ConditionTrue))
}

func (l *lab) approve(request *certificatesv1.CertificateSigningRequest) {
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type:   certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue,
	}}
	l.Expect(l.workload.Status().Update(l.ctx, request)).To(Succeed())
}

// request returns the only CertificateSigningRequest for a signer.
func (l *lab) request(signer string) *certificatesv1.CertificateSigningRequest {
	list := &certificatesv1.CertificateSigningRequestList{}
	l.Expect(l.workload.List(l.ctx, list)).To(Succeed())
	list.Items = slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool { return r.Spec.SignerName != signer })
	l.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

func subjectOf(request *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(request.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err.Error()
	}
	return parsed.Subject.String()
}

func TestStoppedInstallationEnds(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	// A worker waits for a control plane that never starts.
	l.service.order(h.Hardware().UUID, installOrder(h, models.HostRoleWorker))
	l.Eventually(h.Stage).Should(Equal(models.HostStageWaitingForControlPlane))
	l.service.order(h.Hardware().UUID, Instruction{Kind: Stop})
	l.Eventually(func() int { return len(l.service.state(h.Hardware().UUID).orders) }).Should(BeZero())
	l.service.order(h.Hardware().UUID, Instruction{Kind: Exit})
	l.Eventually(h.Registrations).Should(Equal(2))
	l.Expect(h.Boots()).To(HaveLen(1))
}

// newDayTwo boots an unmanaged host and lets it join the installed cluster.
func (r *Rack) newDayTwo(l *lab, name string) *Host {
	host, err := r.BootUnmanaged("http://img/byid/"+testInfraEnv+"/4.19/x86_64/minimal.iso", NewHardware(name))
	l.Expect(err).NotTo(HaveOccurred())
	l.Eventually(host.Registrations).Should(Equal(1))
	order := installOrder(host, models.HostRoleWorker)
	order.DayTwo = true
	l.service.order(host.Hardware().UUID, order)
	return host
}

func TestInstallSingleNode(t *testing.T) {
	l := newLab(t)
	down := l.outage()
	down.Store(true)
	h := l.booted(1)[0]
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode = true, true
	order.IgnitionOverrides = overrides("KUBELET_PROVIDERID=metal3://lab/host-0/m0\nKUBELET_NODE_NAME=sno\n")
	l.service.order(h.Hardware().UUID, order)

	l.Eventually(h.Problem).Should(MatchError("connection refused"))
	l.Expect(h.Stage()).To(Equal(models.HostStageRebooting))
	down.Store(false)
	l.installed(h)
	node := l.node("sno")()
	l.Expect(node.Spec.ProviderID).To(Equal("metal3://lab/host-0/m0"))
	l.Expect(node.Labels).To(HaveKey(workerLabel))
	l.Expect(h.Ignition().Files).To(HaveKey(kubeletEnvironmentFile))
	l.Eventually(l.rolledOut).Should(BeTrue())
	l.Expect(l.topologies()).To(HaveEach(configv1.SingleReplicaTopologyMode))

	l.Expect(h.setPower(false)).To(BeFalse())
	l.Expect(readiness(l.node("sno")())).To(Equal(corev1.ConditionUnknown))
	l.Expect(h.setPower(true)).To(BeTrue())
	l.Eventually(func() corev1.ConditionStatus { return readiness(l.node("sno")()) }).Should(Equal(corev1.ConditionTrue))
	l.installed(h)

	down.Store(true)
	l.Expect(h.setPower(false)).To(BeFalse())
	l.Expect(readiness(l.node("sno")())).To(Equal(corev1.ConditionTrue), "the API is unreachable")
	down.Store(false)
	l.Eventually(func() corev1.ConditionStatus { return readiness(l.node("sno")()) }).Should(Equal(corev1.ConditionUnknown),
		"the loss is reported once the API answers")
}

// The attempts to report end if the Node belongs to another host, or the cluster is deleted.
func TestReportsOfALostNodeEnd(t *testing.T) {
	var answer atomic.Pointer[error]
	var attempts atomic.Int32
	l := newLab(t)
	open := l.rack.options.Workload
	l.rack.options.Workload = func(ctx context.Context, namespace, name string) (client.Client, error) {
		attempts.Add(1)
		if err := answer.Load(); err != nil {
			return nil, *err
		}
		return open(ctx, namespace, name)
	}
	down, deleted := errors.New("connection refused"), fmt.Errorf("deleted: %w", ErrClusterDeleted)
	h := l.singleNode()
	l.Eventually(l.rolledOut).Should(BeTrue())
	tries := attempts.Load
	ended := func() {
		last, since := tries(), time.Now()
		l.Eventually(func() time.Duration {
			if n := tries(); n != last {
				last, since = n, time.Now()
			}
			return time.Since(since)
		}).Should(BeNumerically(">", lastRetry+lastRetry/2), "no pause between attempts is as long")
	}

	answer.Store(&down)
	h.setPower(false)
	other := l.node("sno")().DeepCopy()
	l.Expect(l.workload.Delete(l.ctx, other)).To(Succeed())
	other.ResourceVersion, other.UID = "", "another"
	l.Expect(l.workload.Create(l.ctx, other)).To(Succeed())
	answer.Store(nil)
	ended()
	l.Expect(readiness(l.node("sno")())).To(Equal(corev1.ConditionTrue), "the Node of another host under that name")

	answer.Store(&down)
	h.setPower(true)
	h.setPower(false)
	before := tries()
	l.Eventually(tries).Should(BeNumerically(">", before+1))
	answer.Store(&deleted)
	ended()
}

// The API of a cluster may be unavailable for a moment because a host of its etcd stopped. The Node is reported
// as lost even if this host boots another system then.
func TestLostNodeIsReportedWhenItsHostBootsAnotherSystem(t *testing.T) {
	for name, outage := range map[string]func(*lab) *atomic.Bool{
		"the API refuses connections": (*lab).outage,
		"the API does not answer":     (*lab).silence,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			down := outage(l)
			h := l.singleNode()
			ready := func() corev1.ConditionStatus { return readiness(l.node("sno")()) }
			l.Eventually(ready).Should(Equal(corev1.ConditionTrue))

			before := h.Registrations()
			down.Store(true)
			h.WrongBoot()
			l.Eventually(h.Registrations).Should(Equal(before + 1))
			l.Expect(ready()).To(Equal(corev1.ConditionTrue), "the API is unreachable")
			down.Store(false)
			l.Eventually(ready).Should(Equal(corev1.ConditionUnknown))
			h.Reboot()
			l.Eventually(ready).Should(Equal(corev1.ConditionTrue))
			l.Consistently(ready).WithTimeout(2*lastRetry).Should(Equal(corev1.ConditionTrue), "no late report follows")
		})
	}
}

func TestForgottenHostRegistersAgain(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	l.service.with(h.Hardware().UUID, func(s *scripted) { s.forgotten = true })
	l.Eventually(h.Registrations).Should(Equal(2))

	l.service.forbid(testInfraEnv, true)
	l.service.with(h.Hardware().UUID, func(s *scripted) { s.forgotten = true })
	l.Eventually(h.Problem).Should(MatchError(ErrNotFound))
	l.service.forbid(testInfraEnv, false)
	l.Eventually(h.Registrations).Should(Equal(3))
	l.Expect(h.Problem()).NotTo(HaveOccurred())
}

func TestHostWaitsForTheImageOfItsISO(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.service.forbid(testInfraEnv, true)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(func() error {
		if h := l.rack.Host("host-0"); h != nil {
			return h.Problem()
		}
		return nil
	}).Should(MatchError(ContainSubstring("cannot load the live ISO")))
	l.service.forbid(testInfraEnv, false)
	l.Eventually(l.rack.Host("host-0").Registrations).Should(Equal(1))
	l.Expect(l.rack.Host("host-0").Boots()).To(HaveLen(1))
}

func TestFailedStageIsReportedAndCanBeRepeated(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.Fail(models.HostStageWritingImageToDisk, "no space left on device")
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode = true, true
	l.service.order(h.Hardware().UUID, order)
	l.Eventually(l.stages(h)).Should(Equal([]models.HostStage{
		models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWaitingForBootkube, models.HostStageFailed,
	}))
	l.Expect(l.service.state(h.Hardware().UUID).info).To(Equal("no space left on device"))

	l.service.with(h.Hardware().UUID, func(s *scripted) { s.stages = nil })
	l.Eventually(func() []models.HostStage {
		stages := l.stages(h)()
		if len(stages) == 0 { // as the service does: an instruction may reach the host before the failed installation has ended
			l.service.order(h.Hardware().UUID, order)
		}
		return stages
	}).ShouldNot(BeEmpty())
	l.installed(h)
}

func TestInvalidInstructionsFailTheInstallation(t *testing.T) {
	for name, change := range map[string]func(o *Instruction){
		"unknown disk": func(o *Instruction) { o.InstallationDisk = "/dev/not-found-by-hints" },
		"not ignition": func(o *Instruction) { o.IgnitionOverrides = "{}" },
		"file to fetch": func(o *Instruction) {
			o.IgnitionOverrides = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":{"source":"http://x"}}]}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			h := l.booted(1)[0]
			order := installOrder(h, models.HostRoleMaster)
			change(&order)
			l.service.order(h.Hardware().UUID, order)
			l.Eventually(l.stages(h)).Should(Equal([]models.HostStage{models.HostStageFailed}))
		})
	}
}

func TestWrongBootStaysInDiscoveryUntilTheNextReboot(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.WrongBoot()
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode = true, true
	l.service.order(h.Hardware().UUID, order)
	l.Eventually(h.Registrations).Should(Equal(2))
	l.Expect(h.Stage()).To(Equal(models.HostStageRebooting))
	h.Reboot()
	l.installed(h)
	h.WrongBoot()
	l.Eventually(h.Registrations).Should(Equal(3))
}

func TestRebootDuringDiscoveryRegistersAgain(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.Reboot()
	l.Eventually(h.Registrations).Should(Equal(2))
}

func TestHostBootsBeforeItRegisters(t *testing.T) {
	const delay = 300 * time.Millisecond
	l := newLab(t, func(o *Options) { o.BootDelay = delay })
	l.hosts(1)
	begin := time.Now()
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(func() bool {
		h := l.rack.Host("host-0")
		return h != nil && h.Registrations() == 1
	}).Should(BeTrue())
	l.Expect(time.Since(begin)).To(BeNumerically(">=", delay))
}

// A registration that assisted-service handles while the installed system runs already would look like an
// unexpected restart.
func TestHostIsOffAfterTheAnswerToItsRegistration(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	busy := l.service.answerSlowly()
	h.Reboot()
	<-busy
	off := make(chan struct{})
	go func() { defer close(off); h.PowerOff() }()
	l.Consistently(off).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
	busy <- struct{}{}
	<-off
	l.Expect(l.service.state(h.Hardware().UUID).registrations).To(Equal(2))
}

// At the time at which a machine would boot its next system the registration is abandoned.
func TestHostThatIsOffAbandonsItsRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		service := newScript()
		h := &Host{rack: &Rack{options: Options{Service: service}}}
		ctx, cut := context.WithCancelCause(t.Context())
		busy, given := service.answerSlowly(), make(chan error, 1)
		go func() { given <- h.register(ctx, Agent{}) }()
		<-busy
		<-time.After(time.Hour)
		begin := time.Now()
		cut(errPowerOff)
		g.Expect(<-given).To(MatchError(context.Canceled))
		g.Expect(time.Since(begin)).To(Equal(powerCycle))
		g.Expect(service.state("").registrations).To(BeZero())
	})
}

func TestUnpluggedHostStaysOff(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.PowerOff()
	l.Eventually(func() bool { return l.get("host-0").Status.PoweredOn }).Should(BeFalse())
	l.Expect(h.PoweredOn()).To(BeFalse())
	h.PowerOn()
	l.Eventually(func() bool { return l.get("host-0").Status.PoweredOn }).Should(BeTrue())
	l.Eventually(h.Registrations).Should(Equal(2))
}

func TestSwappedMachineBootsUnreportedHardware(t *testing.T) {
	l := newLab(t)
	l.rack.SwapHardware("lab/host-0", NewHardware("impostor"))
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	impostor := NewHardware("impostor")
	l.Eventually(func() *models.Inventory { return l.service.state(impostor.UUID).inventory }).ShouldNot(BeNil())
	l.Expect(l.service.state(impostor.UUID).inventory.Interfaces[0].MacAddress).To(Equal(impostor.NICs[0].MAC))
	l.Expect(l.get("host-0").Status.HardwareDetails.NIC[0].MAC).To(Equal(NewHardware("lab/host-0").NICs[0].MAC))
}

func TestManyHostsLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("rack", func(t *testing.T) {
		l := newLab(t)
		const n = 80
		_, err := NewBareMetalHosts(l.ctx, l.hub, labNamespace, n)
		l.Expect(err).NotTo(HaveOccurred())
		for i := range n {
			l.bootISO(fmt.Sprintf("host-%d", i), testInfraEnv)
		}
		for i := range n {
			name := fmt.Sprintf("host-%d", i)
			l.Eventually(func() bool { h := l.rack.Host(name); return h != nil && h.Registrations() == 1 }).Should(BeTrue())
		}
		l.Expect(l.rack.Hosts()).To(HaveLen(n))
	})
	NewWithT(t).Eventually(runtime.NumGoroutine).WithTimeout(patience).Should(BeNumerically("<=", before))
}
