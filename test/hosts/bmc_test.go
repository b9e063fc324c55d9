package hosts

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// foreign is a machine that is told what to do by an operator elsewhere.
type foreign struct {
	*WithT
	rack *Rack
}

func newForeign(t *testing.T, options Options) *foreign {
	t.Helper()
	bmh := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "h"}}
	hub := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(bmh).Build()
	options.Service, options.RealOperator = newScript(), true
	f := &foreign{WithT: NewWithT(t), rack: newRack(hub, hub, options)}
	t.Cleanup(f.rack.stop)
	return f
}

func (f *foreign) post(path string, body []byte) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	f.rack.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return recorder
}

func (f *foreign) ask(task Task, o order) answer {
	body, err := json.Marshal(o)
	f.Expect(err).NotTo(HaveOccurred())
	reply := f.post("/"+labNamespace+"/h/"+string(task), body)
	f.Expect(reply.Code).To(Equal(http.StatusOK), reply.Body.String())
	var a answer
	f.Expect(json.Unmarshal(reply.Body.Bytes(), &a)).To(Succeed())
	return a
}

func TestMachineDoesWhatAnOperatorElsewhereAsks(t *testing.T) {
	f := newForeign(t, Options{})
	hardware := NewHardware(labNamespace + "/h")
	f.Expect(f.ask(Registering, order{}).ID).To(Equal(hardware.UUID))
	f.Expect(f.ask(Inspecting, order{}).Details.NIC[0].MAC).To(Equal(hardware.NICs[0].MAC))
	f.Expect(f.ask(Preparing, order{})).To(Equal(answer{}))

	f.Expect(f.ask(Powering, order{On: true}).Failure).To(BeEmpty())
	f.Expect(f.ask(looking, order{}).PoweredOn).To(BeTrue(), "with nothing to boot it runs what nobody sees")
	host := f.rack.Host("h")
	f.Expect(host.Boots()).To(BeEmpty())

	f.Expect(f.ask(Provisioning, order{Image: metal3api.Image{URL: "http://mirror/disk.qcow2"}}).Failure).NotTo(BeEmpty(), "no checksum")
	f.Expect(f.ask(Provisioning, order{Image: *isoImage(testInfraEnv)}).Failure).To(BeEmpty())
	f.Eventually(host.Registrations).Should(Equal(1))
	f.Expect(f.ask(Powering, order{}).Failure).To(BeEmpty())
	f.Expect(host.PoweredOn()).To(BeFalse())
	f.Expect(f.ask(looking, order{}).PoweredOn).To(BeFalse())

	host.PowerOff()
	f.Expect(f.ask(Powering, order{On: true}).Failure).To(ContainSubstring("no power"))
	host.PowerOn()
	f.Expect(f.ask(Powering, order{On: true}).Failure).To(BeEmpty())
	f.Eventually(host.Boots).Should(HaveLen(2))
	f.Expect(f.ask(Deprovisioning, order{Clean: true})).To(Equal(answer{}))
	f.Expect(f.ask(looking, order{}).PoweredOn).To(BeFalse())
}

func TestMachineTakesItsTimeAndFailsForAnOperatorElsewhere(t *testing.T) {
	f := newForeign(t, Options{StateDelay: 50 * time.Millisecond})
	f.Expect(f.ask(Inspecting, order{})).To(Equal(answer{Busy: true}))
	f.Eventually(func() *metal3api.HardwareDetails { return f.ask(Inspecting, order{}).Details }).ShouldNot(BeNil())
	f.Expect(f.ask(Inspecting, order{}).Busy).To(BeTrue(), "it begins anew")

	f.rack.Host("h").FailTask(Deprovisioning, "cleaning failed")
	f.Eventually(func() string { return f.ask(Deprovisioning, order{}).Failure }).Should(Equal("cleaning failed"))
	f.rack.Host("h").FailTask(Deprovisioning, "")
	f.Eventually(func() answer { return f.ask(Deprovisioning, order{}) }).Should(Equal(answer{}))
}

func TestWhoAsksForNoMachineIsTold(t *testing.T) {
	f := newForeign(t, Options{})
	f.Expect(f.post("/"+labNamespace+"/other/look", []byte("{}")).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.post("/h/look", []byte("{}")).Code).To(Equal(http.StatusNotFound))
	f.Expect(f.post("/"+labNamespace+"/h/look", []byte("?")).Code).To(Equal(http.StatusBadRequest))
}
