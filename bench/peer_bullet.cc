// SPDX-License-Identifier: Apache-2.0
#include "bench/peer_bullet.h"

#include <btBulletCollisionCommon.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace fedgen {
namespace {

// Everything is an upright prism around the plane z = 0, in which the robot and its rays stay, so
// that the three-dimensional engine answers the two-dimensional question.
constexpr float kHalfHeight = 1;             // m
constexpr float kWallHalfThickness = 0.05F;  // m
// Bullet rounds the edges of a shape by its margin, 0.04 m unless told otherwise: as large as the
// gaps a good policy drives through. The engine's distances stay exact with a smaller one.
constexpr float kMargin = 0.001F;  // m

constexpr int kObstacleGroup = 1;
constexpr int kRobotGroup = 2;

// Is there a contact with the robot inside an obstacle? Bullet also reports contacts that are near.
struct TouchCallback : btCollisionWorld::ContactResultCallback {
  bool touches = false;

  btScalar addSingleResult(btManifoldPoint& point, const btCollisionObjectWrapper*, int, int,
                           const btCollisionObjectWrapper*, int, int) override {
    touches = touches || point.getDistance() < 0;
    return 0;
  }
};

}  // namespace

// The collision world of one episode after another. What does not depend on the episode is kept.
struct BulletPeer::Engine {
  explicit Engine(float robot_radius)
      : dispatcher(&configuration),
        world(&dispatcher, &broadphase, &configuration),
        robot_shape(robot_radius) {
    robot.setCollisionShape(&robot_shape);
  }

  void Add(std::unique_ptr<btConvexInternalShape> shape, float x, float y, float heading) {
    shape->setMargin(kMargin);
    auto object = std::make_unique<btCollisionObject>();
    object->setCollisionShape(shape.get());
    object->setWorldTransform(
        btTransform(btQuaternion(btVector3(0, 0, 1), heading), btVector3(x, y, 0)));
    world.addCollisionObject(object.get(), kObstacleGroup, kRobotGroup);
    shapes.push_back(std::move(shape));
    objects.push_back(std::move(object));
  }

  void Clear() {
    for (const auto& object : objects) world.removeCollisionObject(object.get());
    objects.clear();
    shapes.clear();
  }

  void Build(const World& from, const Pose& start);
  bool Touches(const PlainRobot& at);
  float CastRay(const PlainRobot& from, float direction_x, float direction_y, float range) const;

  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher;
  btDbvtBroadphase broadphase;
  btCollisionWorld world;
  // A sphere: in the plane it is the robot's disc, and it is all margin, so that its distance to a
  // shape is that of its centre less the radius: Bullet's fast and exact case. It is not added to
  // the world, which contactTest does not need, so no ray meets it.
  btSphereShape robot_shape;
  btCollisionObject robot;
  std::vector<std::unique_ptr<btConvexInternalShape>> shapes;
  std::vector<std::unique_ptr<btCollisionObject>> objects;
  std::vector<float> beam_cos, beam_sin;  // [beams] of the beam's angle to the heading
  std::vector<float> ranges;              // [beams] m
};

void BulletPeer::Engine::Build(const World& from, const Pose& start) {
  Clear();
  const DiscSet& discs = from.discs;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(discs.size()); ++disc) {
    const float radius = discs.radius[disc];
    Add(std::make_unique<btCylinderShapeZ>(btVector3(radius, radius, kHalfHeight)), discs.x[disc],
        discs.y[disc], 0);
  }
  // A wall is thin for us and a box here: the face towards the start is where our segment is.
  const WallSet& walls = from.walls;
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const float normal_x = -walls.dy[wall] / walls.length[wall];
    const float normal_y = walls.dx[wall] / walls.length[wall];
    const float side = (start.x - walls.x[wall]) * normal_x + (start.y - walls.y[wall]) * normal_y;
    const float shift = side > 0 ? -kWallHalfThickness : kWallHalfThickness;
    Add(std::make_unique<btBoxShape>(
            btVector3(walls.length[wall] / 2, kWallHalfThickness, kHalfHeight)),
        walls.x[wall] + walls.dx[wall] / 2 + shift * normal_x,
        walls.y[wall] + walls.dy[wall] / 2 + shift * normal_y,
        std::atan2(walls.dy[wall], walls.dx[wall]));
  }
  for (const Box& box : from.boxes) {
    Add(std::make_unique<btBoxShape>(btVector3(box.half_x, box.half_y, kHalfHeight)), box.x, box.y,
        box.heading);
  }
}

bool BulletPeer::Engine::Touches(const PlainRobot& at) {
  robot.setWorldTransform(btTransform(btQuaternion::getIdentity(), btVector3(at.x, at.y, 0)));
  TouchCallback callback;
  callback.m_collisionFilterGroup = kRobotGroup;
  callback.m_collisionFilterMask = kObstacleGroup;
  world.contactTest(&robot, callback);
  return callback.touches;
}

float BulletPeer::Engine::CastRay(const PlainRobot& from, float direction_x, float direction_y,
                                  float range) const {
  const btVector3 begin(from.x, from.y, 0);
  const btVector3 end(from.x + range * direction_x, from.y + range * direction_y, 0);
  btCollisionWorld::ClosestRayResultCallback callback(begin, end);
  callback.m_collisionFilterGroup = kRobotGroup;
  callback.m_collisionFilterMask = kObstacleGroup;
  world.rayTest(begin, end, callback);
  return callback.hasHit() ? range * callback.m_closestHitFraction : range;
}

BulletPeer::BulletPeer(const Task& task, const Mlp& mlp)
    : task_(task),
      network_(mlp),
      engine_(std::make_unique<Engine>(static_cast<float>(task.robot.radius))) {
  const LidarOptions& lidar = task.lidar;
  const double spacing =
      lidar.beams > 1 ? (lidar.to_degrees - lidar.from_degrees) / (lidar.beams - 1) : 0;
  for (int beam = 0; beam < lidar.beams; ++beam) {
    const double angle = (lidar.from_degrees + spacing * beam) * (std::numbers::pi / 180);
    engine_->beam_cos.push_back(static_cast<float>(std::cos(angle)));
    engine_->beam_sin.push_back(static_cast<float>(std::sin(angle)));
  }
  engine_->ranges.resize(static_cast<std::size_t>(lidar.beams));
}

BulletPeer::~BulletPeer() { engine_->Clear(); }

Episode BulletPeer::Run(const World& world, int start_index) {
  const auto start = static_cast<std::size_t>(start_index);
  const Key noise_key = world.disturbance.key.Fork(start);
  const auto range = static_cast<float>(task_.lidar.range);
  Engine& engine = *engine_;
  engine.Build(world, world.starts[start]);
  PlainRobot robot(world.starts[start]);
  Episode episode;
  while (!PlainHasEnded(task_, world.goal, robot, engine.Touches(robot), episode)) {
    for (std::size_t beam = 0; beam < engine.ranges.size(); ++beam) {
      const float c = engine.beam_cos[beam];
      const float s = engine.beam_sin[beam];
      engine.ranges[beam] = engine.CastRay(robot, robot.cos * c - robot.sin * s,
                                           robot.sin * c + robot.cos * s, range);
    }
    const float control = network_.Decide(robot, engine.ranges);
    PlainAdvance(task_, control, world.disturbance, noise_key, robot);
  }
  return episode;
}

}  // namespace fedgen
