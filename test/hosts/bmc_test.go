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

// foreign is a machine with an operator in another process.
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

func (f *foreign) run(task Task, o order) answer {
	body, err := json.Marshal(o)
	f.Expect(err).NotTo(HaveOccurred())
	reply := f.post("/"+labNamespace+"/h/"+string(task), body)
	f.Expect(reply.Code).To(Equal(http.StatusOK), reply.Body.String())
	var a answer
	f.Expect(json.Unmarshal(reply.Body.Bytes(), &a)).To(Succeed())
	return a
}

func TestRealOperatorRunsTasks(t *testing.T) {
	f := newForeign(t, Options{})
	hardware := NewHardware(labNamespace + "/h")
	f.Expect(f.run(Registering, order{}).ID).To(Equal(hardware.UUID))
	f.Expect(f.run(Inspecting, order{}).Details.NIC[0].MAC).To(Equal(hardware.NICs[0].MAC))
	f.Expect(f.run(Preparing, order{})).To(Equal(answer{}))

	f.Expect(f.run(Powering, order{On: true}).Failure).To(BeEmpty())
	f.Expect(f.run(readingState, order{}).PoweredOn).To(BeTrue(), "without a medium it runs the ramdisk")
	host := f.rack.Host("h")
	f.Expect(host.Boots()).To(BeEmpty())

	f.Expect(f.run(Provisioning, order{Image: metal3api.Image{URL: "http://mirror/disk.qcow2"}}).Failure).NotTo(BeEmpty(), "no checksum")
	f.Expect(f.run(Provisioning, order{Image: *isoImage(testInfraEnv)}).Failure).To(BeEmpty())
	f.Eventually(host.Registrations).Should(Equal(1))
	f.Expect(f.run(Powering, order{}).Failure).To(BeEmpty())
	f.Expect(host.PoweredOn()).To(BeFalse())
	f.Expect(f.run(readingState, order{}).PoweredOn).To(BeFalse())

	host.PowerOff()
	f.Expect(f.run(Powering, order{On: true}).Failure).To(ContainSubstring("no power"))
	host.PowerOn()
	f.Expect(f.run(Powering, order{On: true}).Failure).To(BeEmpty())
	f.Eventually(host.Boots).Should(HaveLen(2))
	f.Expect(f.run(Deprovisioning, order{Clean: true})).To(Equal(answer{}))
	f.Expect(f.run(readingState, order{}).PoweredOn).To(BeFalse())
}

func TestTasksOfTheRealOperatorTakeTimeAndFail(t *testing.T) {
	f := newForeign(t, Options{StateDelay: 50 * time.Millisecond})
	f.Expect(f.run(Inspecting, order{})).To(Equal(answer{Busy: true}))
	f.Eventually(func() *metal3api.HardwareDetails { return f.run(Inspecting, order{}).Details }).ShouldNot(BeNil())
	f.Expect(f.run(Inspecting, order{}).Busy).To(BeTrue(), "the task starts again")

	f.rack.Host("h").FailTask(Deprovisioning, "cleaning failed")
	f.Eventually(func() string { return f.run(Deprovisioning, order{}).Failure }).Should(Equal("cleaning failed"))
	f.rack.Host("h").FailTask(Deprovisioning, "")
	f.Eventually(func() answer { return f.run(Deprovisioning, order{}) }).Should(Equal(answer{}))
}

func TestRequestsForUnknownMachinesFail(t *testing.T) {
	f := newForeign(t, Options{})
	f.Expect(f.post("/"+labNamespace+"/other/look", []byte("{}")).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.post("/h/look", []byte("{}")).Code).To(Equal(http.StatusNotFound))
	f.Expect(f.post("/"+labNamespace+"/h/look", []byte("?")).Code).To(Equal(http.StatusBadRequest))
}
