// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cairo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace fedgen {

// For tests: what a PNG file shows.

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint32_t> rgb;  // [height][width] 0xrrggbb

  std::uint32_t At(int x, int y) const {
    return rgb.at(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x));
  }
  std::int64_t Count(std::uint32_t colour) const {
    return std::count(rgb.begin(), rgb.end(), colour);
  }
};

/// Decodes a PNG with cairo. Empty, and a failed expectation, if it is not one.
inline Pixels DecodePng(std::string_view bytes) {
  const auto read = [](void* rest, unsigned char* to, unsigned int length) {
    auto& view = *static_cast<std::string_view*>(rest);
    if (view.size() < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(to, view.data(), length);
    view.remove_prefix(length);
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_surface_t* const surface = cairo_image_surface_create_from_png_stream(read, &bytes);
  EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
  Pixels pixels;
  pixels.width = cairo_image_surface_get_width(surface);
  pixels.height = cairo_image_surface_get_height(surface);
  for (int y = 0; y < pixels.height; ++y) {
    for (int x = 0; x < pixels.width; ++x) {
      std::uint32_t word = 0;
      std::memcpy(&word,
                  cairo_image_surface_get_data(surface) +
                      y * cairo_image_surface_get_stride(surface) + 4 * x,
                  sizeof word);
      pixels.rgb.push_back(word & 0xffffff);
    }
  }
  cairo_surface_destroy(surface);
  return pixels;
}

}  // namespace fedgen
