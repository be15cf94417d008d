// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/base/check.h"
#include "fedgen/certify/certificate.h"
#include "fuzz/one_line.h"

// Any bytes are a certificate or one line that says why not. A certificate that is read, written
// and read again says the same.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const fedgen::Result<fedgen::Certificate> read = fedgen::ParseCertificate(text, "fuzz");
  if (!read) {
    FEDGEN_CHECK(fedgen::IsOneLine(read.error().message), "{}", read.error().message);
    return 0;
  }
  const std::string written = fedgen::CertificateToJson(*read);
  const fedgen::Result<fedgen::Certificate> again = fedgen::ParseCertificate(written, "written");
  FEDGEN_CHECK(again.has_value(), "{}", again.error().message);
  FEDGEN_CHECK(!fedgen::FindDifference(*read, *again), "{}", written);
  FEDGEN_CHECK(fedgen::CertificateToJson(*again) == written, "{}", written);
  return 0;
}
