"""Small networks, each with one habit that real exports have. A function gives the arguments of interop.Case."""
import torch
import torch.nn.functional as F
from torch import nn

GRAY = (1, 28, 28)


class LeNet(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.relu = nn.ReLU(inplace=inplace)
        self.fc1 = nn.Linear(256, 84)
        self.fc2 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.conv1(x)), 2)
        x = F.max_pool2d(self.relu(self.conv2(x)), 2)
        # Not flatten: view refuses activations that lie channels-last in memory.
        x = x.view(x.size(0), -1)
        return self.fc2(self.relu(self.fc1(x)))


class ChannelsLast(nn.Module):
    """Takes [N, H, W, C], as models converted from TensorFlow do."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x.permute(0, 3, 1, 2))))
        return self.fc(x.mean([2, 3]))


class WithSoftmax(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return F.softmax(self.body(x), dim=1)


class FixedBatch(LeNet):
    """Only one image at a time: the batch size is part of the graph."""

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.conv1(x)), 2)
        x = F.max_pool2d(self.relu(self.conv2(x)), 2)
        return self.fc2(self.relu(self.fc1(x.view(1, 256))))


class InPlaceAfterNorm(nn.Module):
    """In-place operations on values that are read again."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(x))
        y += x
        y = F.relu_(y)
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


class SharedWeights(nn.Module):
    """One convolution and one dense layer used twice each."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 8)
        self.out = nn.Linear(8, 10)

    def forward(self, x):
        x = torch.tanh(self.conv(torch.tanh(self.conv(torch.tanh(self.first(x))))))
        x = x.mean([2, 3])
        return self.out(torch.sigmoid(self.fc(torch.sigmoid(self.fc(x)))))


class FunctionalDropout(LeNet):
    def forward(self, x):
        x = F.max_pool2d(F.leaky_relu(self.conv1(x), 0.1), 2)
        x = F.dropout2d(x, 0.5, self.training)
        x = F.max_pool2d(F.elu(self.conv2(x)), 2).flatten(1)
        x = F.dropout(F.gelu(self.fc1(x)), 0.5, self.training)
        return self.fc2(x)


class ControlFlow(LeNet):
    """A loop and a branch that depend on the data: only scripting keeps them."""

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.conv1(x)), 2)
        x = F.max_pool2d(self.relu(self.conv2(x)), 2).flatten(1)
        y = self.fc1(x)
        steps = 0
        while steps < 3 and float(y.abs().max()) > 0.01:
            y = torch.tanh(y)
            steps += 1
        if float(y.sum()) > 0:
            y = y * 2
        else:
            y = y - 1
        return self.fc2(y)


def softmax_case():
    body = LeNet()
    model = WithSoftmax(body)
    body.eval()
    return dict(model=model, shape=GRAY, images=5, micro_batch=0, logits=body)


ALL = {
    "lenet": lambda: dict(model=LeNet(), shape=GRAY, images=5, micro_batch=0),
    "nhwc": lambda: dict(model=ChannelsLast(), shape=(3, 32, 32), images=5, micro_batch=0, layout="nhwc"),
    "softmax": softmax_case,
    "fixed_batch": lambda: dict(model=FixedBatch(), shape=GRAY, images=3, micro_batch=0, fixed_batch=True),
    "in_place_relu": lambda: dict(model=LeNet(inplace=True), shape=GRAY, images=5, micro_batch=0),
    "in_place_residual": lambda: dict(model=InPlaceAfterNorm(), shape=(1, 28, 28), images=5, micro_batch=4),
    "shared_weights": lambda: dict(model=SharedWeights(), shape=GRAY, images=5, micro_batch=4),
    "functional_dropout": lambda: dict(model=FunctionalDropout(), shape=GRAY, images=5, micro_batch=4),
    # The branch looks at the whole batch, so every image is a batch of its own.
    "control_flow": lambda: dict(model=ControlFlow(), shape=GRAY, images=3, micro_batch=1, formats=["scripted"],
                                 fixed_batch=True),
}
